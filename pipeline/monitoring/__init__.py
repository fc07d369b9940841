"""What running queries report: progress, measures, states, alerts."""
