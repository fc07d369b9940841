"""The Health page: how each query is doing, its history, and the newest dead letters."""
