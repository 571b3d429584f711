"""What is stored and sent: the bucket record, the chunk document, its payload and how columns are packed."""
