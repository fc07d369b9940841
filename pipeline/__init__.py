"""Spark: from source topics to result topics and tables. Independent of producers and dashboard."""
