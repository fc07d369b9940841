"""Which rows a stream dropped as late, and which of them a watermark dropped that had run ahead: rows and batches in, counts out."""

from datetime import UTC, datetime, timedelta

import pytest

from contract.errors import StreamgaugeError
from pipeline.checkpoint.contents import Batch
from pipeline.verification.lateness import (
    LATENESS,
    WRONGLY_LATE,
    lateness_of,
    offset_ranges,
    watermarks_ahead,
    with_lateness,
    with_wrongly_late,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
A, B = ("topic", 0), ("topic", 1)


def ms(minutes):
    return round((NOON + timedelta(minutes=minutes)).timestamp() * 1000)


YEAR_2099_MS = round(datetime(2099, 1, 1, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def flagged(spark):
    """Rows of partitions, as minutes after noon in order of offset, or the minutes of one record; and of batches: ends, and the watermark of the plan."""

    def make(partitions, *batches):
        rows = [
            (*which, offset, NOON + timedelta(minutes=one))
            for which, minutes in partitions.items()
            for offset, many in enumerate(minutes)
            for one in (many if isinstance(many, list) else [many])
        ]
        frame = spark.createDataFrame(rows, "topic string, partition int, offset bigint, time timestamp")
        planned = [
            Batch(number, dict(zip(partitions, ends, strict=True)), watermark_ms) for number, (*ends, watermark_ms) in enumerate(batches)
        ]
        return with_lateness(frame, "time", offset_ranges({}, planned, len(planned)))

    return make


def wrongly_late(frame, cut_until_ms=0):
    ahead = watermarks_ahead(frame, "time", cut_until_ms)
    told = with_wrongly_late(frame, "time", ahead, "10 minutes")
    return sorted((row.partition, row.offset) for row in told.where(f"{LATENESS} = {WRONGLY_LATE}").collect())


def test_a_watermark_behind_the_events_has_not_run_ahead(flagged):
    frame = flagged({A: [0, 20, 9, 40], B: [0, 1, 2, 3]}, (2, 2, 0), (2, 2, ms(10)), (3, 3, ms(10)), (4, 4, ms(10)))
    assert watermarks_ahead(frame, "time", 0) == []
    assert lateness_of(frame, ["time"]).late_rows == 3


def test_rows_in_time_on_their_own_partition_are_wrongly_late_after_one_of_2099(flagged):
    # Of partition A the record of 2099 is no row, as it does not count. 25 is in time on B, which has come to 30; 15 is late there too.
    frame = flagged({A: [0, 5, 6], B: [0, 30, 25, 15]}, (1, 1, 0), (1, 2, YEAR_2099_MS), (3, 4, YEAR_2099_MS))
    assert watermarks_ahead(frame, "time", 0) == [YEAR_2099_MS]
    assert wrongly_late(frame) == [(0, 1), (0, 2), (1, 2)]


def test_a_row_exactly_the_delay_behind_its_partition_is_late(flagged):
    frame = flagged({A: [0, 30, 20, 20.1]}, (2, 0), (2, YEAR_2099_MS), (4, YEAR_2099_MS))
    assert wrongly_late(frame) == [(0, 3)]


def test_the_rows_of_one_record_do_not_make_one_another_late(flagged):
    frame = flagged({A: [0, [60, 1]]}, (1, 0), (1, YEAR_2099_MS), (2, YEAR_2099_MS))
    assert wrongly_late(frame) == [(0, 1), (0, 1)]


def test_a_watermark_that_ran_ahead_is_told_also_when_time_has_caught_up_with_it(flagged):
    frame = flagged({A: [0, 30, 300, 301]}, (1, 0), (1, ms(200)), (2, ms(200)), (4, ms(200)), (4, ms(291)))
    assert watermarks_ahead(frame, "time", 0) == [ms(200)]
    assert wrongly_late(frame) == [(0, 1)]


def test_events_count_as_wrongly_late_when_none_of_their_rows_has_counted(flagged):
    frame = flagged({A: [0, 0, 5, 5]}, (1, 0), (1, YEAR_2099_MS), (4, YEAR_2099_MS))
    told = with_wrongly_late(frame, "time", watermarks_ahead(frame, "time", 0), "10 minutes")
    found = lateness_of(told, ["time"])
    assert (found.events, found.late_events, found.wrongly_late_events) == (2, 0, 1), "noon has counted before the watermark ran ahead"


class TestRetention:
    def test_a_watermark_that_what_is_cut_explains_is_right(self, flagged):
        frame = flagged({A: [20, 5, 40]}, (2, ms(15)), (3, ms(15)), (3, ms(30)))
        assert watermarks_ahead(frame, "time", ms(25)) == []

    def test_one_that_it_cannot_explain_has_run_ahead(self, flagged):
        frame = flagged({A: [20, 30]}, (1, ms(15)), (1, YEAR_2099_MS), (2, YEAR_2099_MS))
        assert watermarks_ahead(frame, "time", ms(25)) == [YEAR_2099_MS]

    @pytest.mark.parametrize("cut_until_ms", [YEAR_2099_MS + 1, None])
    def test_whether_one_has_that_is_ahead_of_all_that_is_left_is_not_known(self, flagged, cut_until_ms):
        frame = flagged({A: [20, 30]}, (1, YEAR_2099_MS), (2, YEAR_2099_MS))
        with pytest.raises(StreamgaugeError, match="it is not known whether the dropped rows were late"):
            watermarks_ahead(frame, "time", cut_until_ms)
