"""What all packages agree on: domains, topics and their rows, checkpoints, static tables, and which JSON is valid."""
