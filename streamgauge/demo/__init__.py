"""The demo: runs all programs at once and restarts them when they end."""
