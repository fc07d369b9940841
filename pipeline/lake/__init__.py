"""The tables of the lake: what they are called, SQL over them, and their maintenance."""
