"""What is read: records of topics and files, and from checkpoints, which of them a query has committed."""
