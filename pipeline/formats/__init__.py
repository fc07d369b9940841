"""Record formats: JSON, Avro, dead letters and record clocks."""
