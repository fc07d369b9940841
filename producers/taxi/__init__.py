"""Green taxi trips: simulated, or from TLC's files."""

from producers.taxi.command import produce as produce
