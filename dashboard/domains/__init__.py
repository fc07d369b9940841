"""A domain a file: its page."""
