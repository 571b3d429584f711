"""Judges the documents of one stream in their order: what counts once, when it was taken, and what is missing."""
