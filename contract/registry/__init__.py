"""The schema registry: where it is, and its client."""
