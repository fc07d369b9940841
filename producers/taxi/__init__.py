"""Green taxi trips: simulated, or TLC's files."""
