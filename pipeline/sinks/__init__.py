"""Where result rows go."""
