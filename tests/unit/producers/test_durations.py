"""Durations as people write them."""

import pytest

from producers.durations import seconds
from streamgauge.errors import StreamgaugeError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10 minutes", 600), ("1 minute", 60), ("1 hour 30 minutes", 5400), ("2.5 seconds", 2.5), ("1 DAY", 86_400), (" 5 minutes ", 300)],
)
def test_a_duration_has_its_seconds(text, expected):
    assert seconds(text, "--watermark") == expected


@pytest.mark.parametrize("text", ["", "soon", "10", "minutes", "0 minutes", "10 minutes or so", "-5 minutes"])
def test_what_is_no_duration_is_refused_by_name(text):
    with pytest.raises(StreamgaugeError, match="--watermark is"):
        seconds(text, "--watermark")
