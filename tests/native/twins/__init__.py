"""The readable twins of compiled windows of buckets and of the engines, for the tests: the same answers to the bit."""
