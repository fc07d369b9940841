"""A query's checkpoint: Spark's files, the journal of all batches, the process that uses it, and its owner."""
