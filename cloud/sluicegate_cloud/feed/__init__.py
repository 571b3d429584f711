"""The changes feed of a Sync Gateway as a source: by shard, resuming exactly, every row told or its reason."""
