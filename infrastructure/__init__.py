"""What every program uses, whatever the domain: settings, clients of Kafka and the schema registry, Java, storage, security, processes and output."""
