"""The command line interface, and the embedded platform: Kafka and the schema registry."""

__version__ = "0.1.0"
