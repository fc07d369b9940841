"""A query's checkpoint: what Spark writes into it, every batch that it has had, who uses it and to whom it belongs."""
