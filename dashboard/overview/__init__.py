"""The Overview page: each domain at a glance."""
