"""One file per domain: schema, transforms, queries."""
