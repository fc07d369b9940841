"""The page of each domain, one file per domain."""
