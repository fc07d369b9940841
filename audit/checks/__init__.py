"""One check per kind of result: result topics, dead letters, archives, tables of ingested topics, and tables of the database."""
