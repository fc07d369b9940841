"""The command line interface, and the embedded platform: Kafka and the schema registry."""
