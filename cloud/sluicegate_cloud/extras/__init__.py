"""Windows of what buckets carry beside their record: lines, means over time, quantiles, distinct counts, sketches."""
