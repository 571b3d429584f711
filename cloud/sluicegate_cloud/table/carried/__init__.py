"""Windows of a table that are answered from what buckets carry: quantiles, distinct counts, slopes and the like."""
