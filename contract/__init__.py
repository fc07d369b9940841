"""What all rooms agree on: domains, topics, settings, errors, and the clients of Kafka, the schema registry and storage. It imports no other room."""
