"""What every program does: wait, repeat, stop."""
