"""Whole plants in one agent: topic filters with named levels, and streams by key, which come as they are heard of."""
