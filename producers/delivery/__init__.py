"""Shared by all producers: pacing, faults, sending, resuming, counting."""
