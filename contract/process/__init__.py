"""What every program does: wait, stop."""
