"""Which source reads a topic."""
