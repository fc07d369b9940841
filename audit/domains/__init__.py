"""One file per domain: what its results must be, in SQL over its records."""
