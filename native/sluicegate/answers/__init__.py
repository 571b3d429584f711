"""Results of partials, and their certain intervals, in compiled code."""
