"""Options that all producers share."""

from datetime import UTC, datetime

import pytest
from messages import refused

from producers.delivery.options import seconds_between, start_time


def test_a_start_without_a_time_zone_is_utc():
    assert start_time("2024-03-01T08:00:00") == start_time("2024-03-01T09:00:00+01:00") == datetime(2024, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize("text", ["1999-12-31", "2501-01-01T00:00:00Z"])
def test_a_start_that_cannot_be_simulated_is_refused(text):
    with refused(f"--start is {text}; expected a time from 2010 to 2500"):
        start_time(text)


def test_events_may_be_a_day_apart_and_no_more():
    assert seconds_between(86_400, 1) == 86_400
    with refused("events are 86401 s of event time apart (--speed-up divided by --rate)"):
        seconds_between(86_401, 1)
