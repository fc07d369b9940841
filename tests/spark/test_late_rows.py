"""The rule by which `verify` tells late rows: stretches of offsets with their watermarks in, lateness out."""

import pytest
from streaming import at

from pipeline.verification.lateness import IN_TIME, LATE, LATENESS, UNKNOWN, OffsetRange, lateness_of, with_lateness


def stretch(start, end, late_until, in_time_after=None):
    late_until_ms, in_time_after_ms = (round(at(time).timestamp() * 1000) for time in (late_until, in_time_after or late_until))
    return OffsetRange(("topic", 0), start, end, late_until_ms, in_time_after_ms)


@pytest.fixture
def flagged(spark):
    """Rows of one partition at these times, one an offset from `first` on, under these stretches."""

    def make(times, *stretches, first=0):
        rows = [("topic", 0, offset, at(time)) for offset, time in enumerate(times, first)]
        return with_lateness(spark.createDataFrame(rows, "topic string, partition int, offset bigint, time timestamp"), "time", stretches)

    return make


def lateness(frame):
    return [row[LATENESS] for row in frame.orderBy("offset").collect()]


def test_a_row_goes_by_the_stretch_that_holds_its_offset(flagged):
    frame = flagged(["10:30"] * 4, stretch(0, 2, "10:00"), stretch(2, 4, "11:00"))
    assert lateness(frame) == [IN_TIME, IN_TIME, LATE, LATE]


def test_a_row_goes_by_one_stretch_also_among_so_many_offsets_that_two_share_a_bucket(flagged):
    frame = flagged(["10:30"] * 3, stretch(0, 99_999, "10:00"), stretch(99_999, 100_000, "11:00"), first=99_997)
    assert lateness(frame) == [IN_TIME, IN_TIME, LATE]


def test_a_row_at_the_watermark_is_late(flagged):
    assert lateness(flagged(["10:00", "10:00:01"], stretch(0, 2, "10:00"))) == [LATE, IN_TIME]


def test_a_row_between_two_watermarks_one_of_which_was_its_own_is_not_told(flagged):
    times = ["10:00", "10:00:01", "11:00", "11:00:01"]
    assert lateness(flagged(times, stretch(0, 4, "10:00", "11:00"))) == [LATE, UNKNOWN, UNKNOWN, IN_TIME]


def test_an_event_is_late_when_none_of_its_rows_was_in_time(flagged):
    times = ["10:00", "10:00", "09:00", "09:00"]
    found = lateness_of(flagged(times, stretch(0, 1, "09:00"), stretch(1, 4, "11:00")), ["time"])
    assert (found.events, found.late_events, found.late_rows) == (2, 1, 3)
