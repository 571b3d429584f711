"""A merge's table: documents, windows and partials in Parquet, of which a run reads and rewrites what is touched."""
