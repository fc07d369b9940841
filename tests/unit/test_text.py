"""How lengths of time, sizes and texts of topics read."""

import json
from datetime import timedelta

import pytest

from infrastructure.text import behind, duration, escaped, printable, size_text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (41.9, "41 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3_600, "1 h"),
        (3_605, "1 h"),
        (7_505, "2 h 5 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, shown):
    assert duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_500, "1.5 kB"), (163_000_000, "163 MB"), (4e9, "4.0 GB")],
)
def test_sizes_read_easily(size_bytes, shown):
    assert size_text(size_bytes) == shown


def test_a_watermark_is_behind_the_clock_or_ahead_of_it():
    assert [behind(age_ms) for age_ms in (None, 200_000, 0, -60_000)] == ["", "3 min 20 s ago", "0 s ago", "1 min ahead"]


def test_what_a_terminal_would_obey_is_replaced():
    assert (
        printable("a\x1b[2Jb\tc\r\nd\u202e \N{LATIN SMALL LETTER E WITH ACUTE}")
        == "a\ufffd[2Jb c  d\ufffd \N{LATIN SMALL LETTER E WITH ACUTE}"
    )


def test_what_a_terminal_would_obey_is_escaped_and_nothing_is_lost():
    text = "a\x1b[2Jb\tc\r\nd\x7f\x9b\u202e é\U000e0001\\"
    safe = escaped(text)
    assert safe == r"a\u001b[2Jb\tc\r\nd\u007f\u009b\u202e é\udb40\udc01" + "\\"
    assert json.loads(f'"{safe[:-1]}"') == text[:-1]
