"""How times and numbers read on every page. Times are shown as they stand in UTC."""

from datetime import datetime


def clock(moment: datetime) -> str:
    """A moment of today or of another day, to the second: "2026-11-21 10:02:13 UTC"."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def window(start: datetime, end: datetime) -> str:
    """A window of time on one day: "21 Nov, 10:00-11:00 UTC", with a dash as wide as an n."""
    return f"{start.day} {start:%b, %H:%M}\N{EN DASH}{end:%H:%M} UTC"


def hours(start: datetime, end: datetime) -> str:
    """The hours of a window: "10:00-11:00", with a dash as wide as an n."""
    return f"{start:%H:%M}\N{EN DASH}{end:%H:%M}"


def seconds_window(start: datetime, end: datetime) -> str:
    """A window that begins and ends at a second: "10:02:30-10:03:30 UTC", with a dash as wide as an n."""
    return f"{start:%H:%M:%S}\N{EN DASH}{end:%H:%M:%S} UTC"


def day(moment: datetime) -> str:
    """A day: "8 March 2024"."""
    return f"{moment.day} {moment:%B %Y}"


def dollars(amount: float, *, cents: bool = False) -> str:
    """An amount of money: "$1,234", or "$1,234.50" with cents; "-$5" below zero."""
    return f"{'-' if amount < 0 else ''}${abs(amount):,.{2 if cents else 0}f}"


def count(number: int) -> str:
    """A count with its thousands apart: "1,234"."""
    return f"{number:,}"


def several(number: int, one: str, more: str) -> str:
    """A count with its noun: "1 value", "1,234 values"."""
    return f"{count(number)} {one if number == 1 else more}"
