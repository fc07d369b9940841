"""The checkpoints of queries: their names, and what is in them."""
