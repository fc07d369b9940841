"""Reports on running queries: progress, measures, states, alerts."""
