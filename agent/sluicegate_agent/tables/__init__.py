"""Rows of tables that several folders read and write: each is checked as it is read."""
