"""What is settled of a table's ledger: runs of documents, a row each."""
