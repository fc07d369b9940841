"""The Java runtime and the jars of the broker, the registry and Spark."""
