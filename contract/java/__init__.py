"""The Java and the jars that the broker, the registry and Spark run on."""
