"""What every program does: wait, stop, keep another out."""
