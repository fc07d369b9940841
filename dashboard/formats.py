"""Formats times and numbers for all pages. Times are shown in UTC, unconverted."""

import json
import re
from datetime import datetime, timedelta


def clock(moment: datetime) -> str:
    """A moment, to the second: "2026-11-21 10:02:13 UTC"."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def window(start: datetime, end: datetime) -> str:
    """A window, with an en dash: "21 Nov, 10:00-11:00". See `hours`."""
    return f"{start.day} {start:%b}, {hours(start, end)}"


def hours(start: datetime, end: datetime) -> str:
    """The hours of a window, with an en dash: "10:00-11:00". With seconds if it has any, and with the day of its end if it is as long as a day."""
    times = "%H:%M:%S" if start.second or end.second else "%H:%M"
    day_of_end = f"{end.day} {end:%b}, " if end - start >= timedelta(days=1) else ""
    return f"{start:{times}}\N{EN DASH}{day_of_end}{end:{times}}"


def seconds_window(start: datetime, end: datetime) -> str:
    """A window to the second, with an en dash: "10:02:30-10:03:30"."""
    return f"{start:%H:%M:%S}\N{EN DASH}{end:%H:%M:%S}"


def day(moment: datetime) -> str:
    """A day: "8 March 2024"."""
    return f"{moment.day} {moment:%B %Y}"


def dollars(amount: float, *, cents: bool = False) -> str:
    """An amount of money: "$1,234", or "$1,234.50" with cents; "-$5" if negative."""
    return f"{'-' if amount < 0 else ''}${abs(amount):,.{2 if cents else 0}f}"


def count(number: int) -> str:
    """A count with thousands separators: "1,234"."""
    return f"{number:,}"


def rate(per_second: float) -> str:
    """A rate, of which two digits are enough: "1,234", "1.5", "0"."""
    return f"{per_second:,.0f}" if per_second >= 10 or not per_second else f"{per_second:.1f}"  # noqa: PLR2004


def several(number: int, one: str, more: str) -> str:
    """A count with its noun: "1 value", "1,234 values"."""
    return f"{count(number)} {one if number == 1 else more}"


def graphviz_text(text: str) -> str:
    """Text from a topic for a drawing: Graphviz knows the quotes and escapes of JSON, and reads an escaped backslash as one."""
    return json.dumps(text, ensure_ascii=False)


def plain(text: str) -> str:
    """Text from a topic for a place that reads Markdown: every character that could be markup is escaped. Before others, a backslash would be shown."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
