"""What writes the source topics. Knows the topics, knows nothing of Spark."""
