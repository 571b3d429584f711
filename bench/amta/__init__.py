"""The AMTA paper's Experiment 3: six aggregations of a long stream, each algorithm's time, every answer checked."""
