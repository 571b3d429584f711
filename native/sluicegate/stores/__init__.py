"""Stores of a window's partials: one small contract, one module for each."""
