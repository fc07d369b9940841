"""The demo: every program at once, started again when it ends."""
