"""The record: what commits took since the tables were last written, appended to one file; a restart plays it back."""
