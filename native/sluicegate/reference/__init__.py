"""The readable pure-Python twin of every compiled algorithm, and the recalculating oracle."""
