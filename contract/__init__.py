"""What all rooms agree on: domains, topics and their rows, checkpoints, static tables, and what is JSON."""
