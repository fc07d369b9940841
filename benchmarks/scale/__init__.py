"""What a rate needs, predicted from measured costs: docs/measured.md."""
