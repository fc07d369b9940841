"""The boroughs of TLC's zones, as a reader knows them."""

UNKNOWN, NOT_APPLICABLE = "Unknown", "N/A"
"""TLC has a zone for "unknown" and one for "N/A". To a reader both are unknown."""


def known(borough: str) -> str:
    """The borough, UNKNOWN for NOT_APPLICABLE."""
    return UNKNOWN if borough == NOT_APPLICABLE else borough
