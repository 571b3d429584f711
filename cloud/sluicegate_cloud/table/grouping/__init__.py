"""Whose windows are added up, and what a registry says of devices."""
