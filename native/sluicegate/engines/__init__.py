"""Engines: the algorithms that keep a window, one to a module; `sluicegate.catalogue` has their names."""
