"""What every producer does: pacing, faults, sending, resuming, counting."""
