"""What the histograms keep, how exact they are, and what they cost: `python -m bench.histograms`."""
