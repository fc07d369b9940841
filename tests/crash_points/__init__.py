"""Crash points: a program is killed before each of its file operations and of its requests that change Kafka, and restarted."""
