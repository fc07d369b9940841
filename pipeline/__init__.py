"""Spark: from source topics to result topics and tables. Knows the topics, knows nothing of producers or dashboard."""
