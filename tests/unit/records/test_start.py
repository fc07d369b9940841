"""Where --from begins: a text and the offsets that there are in, the first offset to read out."""

import pytest
from messages import refused

from streamgauge.records.start import Start

THERE = {0: (10, 20), 1: (0, 5)}


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("beginning", {0: 10, 1: 0}),
        ("end", {0: 20, 1: 5}),
        ("12", {0: 12, 1: 5}),
        ("0", {0: 10, 1: 0}),
        ("-3", {0: 17, 1: 2}),
        ("-100", {0: 10, 1: 0}),
    ],
)
def test_it_is_an_offset_between_the_first_and_the_end(text, offsets):
    assert Start.of(text).offsets(THERE, None) == offsets


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2026-01-01T10:00:00Z", 1_767_261_600_000),
        ("2026-01-01T11:00:00+01:00", 1_767_261_600_000),
        ("2026-01-01 10:00", 1_767_261_600_000),
        ("2026-01-01", 1_767_225_600_000),
        ("2026-01-01T10:00:00.0001Z", 1_767_261_600_001),
        ("0001-01-01", 0),
    ],
)
def test_a_time_is_utc_without_an_offset_and_kafka_knows_where_it_is(text, time_ms):
    assert Start.of(text).offsets(THERE, lambda found, there: {0: found, 1: len(there)}) == {0: time_ms, 1: 2}


@pytest.mark.parametrize("text", ["", "start", "yesterday", "1.5", "--3", "2026-13-01", "1" * 5000])
def test_anything_else_is_refused_with_what_there_is(text):
    with refused(f"--from is {text!r}", "beginning", "end", "42", "-10", "2026-01-31T10:00:00Z"):
        Start.of(text)
