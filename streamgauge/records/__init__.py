"""A look into any topic: its records, each decoded by what it holds, and the schema that they have in Spark."""
