"""Windows over Python objects: an exact window in plain Python, on readable engines."""
