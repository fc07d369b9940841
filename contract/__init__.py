"""Shared by all packages: domains, topics, settings, errors, and clients of Kafka, the schema registry and storage. Imports no other."""
