"""Durations as people write them."""

import pytest
from messages import refused

from infrastructure.durations import seconds


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("10 minutes", 600),
        ("1 minute", 60),
        ("1 hour 30 minutes", 5400),
        ("2.5 seconds", 2.5),
        ("1 DAY", 86_400),
        (" 5 minutes ", 300),
        ("36525 days", 3_155_760_000),
    ],
)
def test_a_duration_has_its_seconds(written, expected):
    assert seconds(written, "--watermark") == expected


@pytest.mark.parametrize(
    "written",
    [
        "",
        "soon",
        "10",
        "minutes",
        "0 minutes",
        "10 minutes or so",
        "-5 minutes",
        "36525 days 1 second",
        "9" * 400 + " days",
        "10minutes",
        "1 hour30 minutes",
        "\uff11 minute",
        "10\xa0minutes",
    ],
)
def test_what_is_no_duration_is_refused_by_name(written):
    with refused(f"--watermark is {written!r}"):
        seconds(written, "--watermark")
