"""Starts, monitors, restarts, stops and resets queries."""
