"""Sinks: where result rows go."""
