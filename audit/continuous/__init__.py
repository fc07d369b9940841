"""The audit that never ends: what is right at any moment, at a cost that does not grow with the history."""
