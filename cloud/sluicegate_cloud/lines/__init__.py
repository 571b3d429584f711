"""What the documents of one line come to, in their order: what counts once, when it was, and what is missing."""
