"""The recount: the rows that the records of a topic must give, and the rules for late and repeated events."""
