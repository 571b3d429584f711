"""`sluicegate plan --for`: which window suits readings that a file holds, by trying each on them."""
