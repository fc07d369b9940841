"""The Health page: the state of each query, its history, and the newest dead letters."""
