"""Nest cameras: simulated or recorded documents."""

from producers.nest.command import produce as produce
