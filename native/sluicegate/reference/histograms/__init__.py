"""The histograms' twins: moments of a sample, and what a pair of buckets that is merged may add."""
