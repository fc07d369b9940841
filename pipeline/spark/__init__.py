"""The Spark session, on this machine or a cluster, and its log."""
