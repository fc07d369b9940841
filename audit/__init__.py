"""The auditor: recounts every result from the records of its source, with DuckDB, and shares no line with the pipeline."""
