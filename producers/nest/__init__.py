"""Nest cameras: simulated or recorded documents."""
