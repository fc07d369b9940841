"""Wikimedia edits: live, simulated or recorded."""
