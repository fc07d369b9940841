"""The embedded defaults: Java, locked jars, a Kafka broker and the processes that they run in."""
