"""Memory in chunks for the partials, and for the times of single readings."""
