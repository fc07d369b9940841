"""The embedded Kafka and schema registry, and local processes."""
