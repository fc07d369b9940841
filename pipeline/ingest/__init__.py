"""Ingests a JSON topic into a Delta table: the newest record of each key, or each record."""
