"""The embedded Kafka and schema registry, and the processes of this machine."""
