"""Between which values a window's result certainly lies: sums, variances, extremes, and a window's intervals."""
