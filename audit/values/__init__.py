"""Values of records, as DuckDB takes them: JSON, Avro, and the texts that Spark makes of them."""
