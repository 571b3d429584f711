"""Engines that keep their partials in a store, a page at a time."""
