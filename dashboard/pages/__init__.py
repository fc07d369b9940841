"""A page a file."""
