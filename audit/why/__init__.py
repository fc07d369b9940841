"""`streamgauge why`: the records behind one row."""
