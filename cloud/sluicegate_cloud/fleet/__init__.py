"""The merge over many streams at once: rows of whole streams in whole columns, in one pass over Arrow batches."""
