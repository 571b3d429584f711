"""Where files lie: a folder, or a bucket behind S3's interface. Imports nothing, for the commands' help."""
