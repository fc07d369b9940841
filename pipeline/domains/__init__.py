"""A domain a file: schema, transforms, queries."""
