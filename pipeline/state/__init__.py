"""Stateful processors: queries that keep a state of their own for each key, with timers."""
