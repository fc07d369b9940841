"""What records look like inside: JSON, Avro, dead letters, clocks."""
