"""Kafka clients, topic creation, table and recent-record readers, and error messages."""
