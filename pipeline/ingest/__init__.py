"""Any keyed JSON topic as a Delta table that holds the newest record of each key."""
