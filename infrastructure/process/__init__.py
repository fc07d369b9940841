"""Waiting, stop signals, locks, logs and ports of programs."""
