"""The histograms' twins: what joins the newest bucket, and the statistics that decide it."""
