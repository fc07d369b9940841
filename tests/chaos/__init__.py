"""Chaos: rounds of faults under load, each on a platform of its own, and the proof that nothing is wrong after them."""
