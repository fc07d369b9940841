"""Benchmarks: commands that print figures, `make bench`. They test nothing, and no test is timed."""
