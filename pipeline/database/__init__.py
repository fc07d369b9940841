"""Result topics as tables of a relational database: PostgreSQL, or an SQLite file."""
