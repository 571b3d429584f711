"""How long a merge of a fleet takes, and what it grows with, beside plain Spark, DuckDB and Polars."""
