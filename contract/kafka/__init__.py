"""Kafka for everyone: clients, topics, reading tables and newest records, and what errors mean."""
