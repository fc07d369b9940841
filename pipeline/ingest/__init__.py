"""Ingests a keyed JSON topic into a Delta table with the newest record of each key."""
