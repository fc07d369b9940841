"""Client authentication: Kafka's own properties, read once and translated for each client."""
