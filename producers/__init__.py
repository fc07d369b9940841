"""Producers that write the source topics. They do not depend on Spark."""
