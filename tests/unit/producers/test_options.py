"""Options that all producers share."""

from datetime import UTC, datetime

import pytest
from messages import refused

from producers.delivery.options import seconds_between, start_time


def test_a_start_without_a_time_zone_is_utc():
    assert start_time(datetime(2024, 3, 1, 8)) == datetime(2024, 3, 1, 8, tzinfo=UTC)  # noqa: DTZ001 - as it was typed


@pytest.mark.parametrize("year", [1999, 2501])
def test_a_start_that_cannot_be_simulated_is_refused(year):
    with refused(f"--start is {year}-", "from 2010 to 2500"):
        start_time(datetime(year, 1, 1, tzinfo=UTC))


def test_events_may_be_a_day_apart_and_no_more():
    assert seconds_between(86_400, 1) == 86_400
    with refused("events are 86401 s of event time apart (--speed-up divided by --rate)"):
        seconds_between(86_401, 1)
