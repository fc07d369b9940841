"""Green taxi trips: simulated, or TLC's files."""

from producers.taxi.command import produce as produce
