"""`streamgauge doctor`: small checks, each of which looks at one thing and says what is well, what is not, and what to do."""
