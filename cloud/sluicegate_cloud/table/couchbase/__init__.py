"""A table's windows as documents in Couchbase: through a Sync Gateway's REST interface, or a server's SDK."""
