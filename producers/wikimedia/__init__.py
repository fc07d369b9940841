"""Wikimedia edits: live, simulated or recorded."""

from producers.wikimedia.command import produce as produce
