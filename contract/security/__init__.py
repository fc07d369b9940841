"""How clients prove who they are: Kafka's own properties, read once, and handed to each client in its own terms."""
