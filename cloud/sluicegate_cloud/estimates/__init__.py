"""Each family of aggregates over buckets: its estimate and its certain interval, over whole columns."""
