"""The schema registry: its address and its client."""
