"""`streamgauge doctor`: small checks, each of which examines one thing and reports its state and what to do."""
