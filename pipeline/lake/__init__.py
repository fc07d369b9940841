"""The tables of the lake: their names, SQL queries over them, and their maintenance."""
