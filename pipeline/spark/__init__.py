"""The Spark session, local or on a cluster, and the logs of its file source and sink."""
