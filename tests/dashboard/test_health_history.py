"""What the Health page draws of the events of the queries: events at explicit times in, points out."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from dashboard.health.history import decode_point, history_of
from infrastructure.kafka.follower import Snapshot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Event:
    """A record as Kafka's consumer gives it."""

    def __init__(self, seconds, query="counts", event="progress", **fields):
        time = f"{NOON + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.000Z"
        measures = {
            "sink_rows": 7,
            "rows_dropped_by_watermark": 1,
            "input_rows_per_second": 80.0,
            "processed_rows_per_second": 100.0,
            "batch_ms": 400,
            "duration_ms": {"latestOffset": 20, "getBatch": 5, "queryPlanning": 50, "walCommit": 10, "addBatch": 300, "commitOffsets": 15},
            "source_lag": {"a-0": 2, "a-1": 3},
            "watermark_age_ms": 60_000,
            "state_bytes": 9,
        }
        self._value = orjson.dumps({"event": event, "query": query, "time": time, **(measures if event == "progress" else {}), **fields})

    def value(self):
        return self._value


def points(*events):
    return history_of(Snapshot("kafka", "topic", rows=tuple(map(decode_point, events)))).to_dict("records")


def test_a_batch_is_a_point():
    (point,) = points(Event(3))
    assert point | {"at": None} == {
        "at": None,
        "query": "counts",
        "is_start": False,
        "sink_rows": 7.0,
        "too_late": 1.0,
        "rows_per_second": 80.0,
        "processed_per_second": 100.0,
        "batch_seconds": 0.4,
        "reading_seconds": 0.025,
        "planning_seconds": 0.05,
        "processing_seconds": 0.3,
        "committing_seconds": 0.025,
        "lag": 5.0,
        "watermark_age_seconds": 60.0,
        "state_bytes": 9.0,
        "stretch": 0,
    }
    assert point["at"] == NOON, "the beginning of its five seconds"


def test_batches_within_five_seconds_are_one_point_of_their_mean():
    found = points(Event(1, batch_ms=100), Event(4, batch_ms=300), Event(5, batch_ms=700), Event(6, "archive", batch_ms=900))
    assert [(point["query"], point["batch_seconds"]) for point in found] == [("archive", 0.9), ("counts", 0.2), ("counts", 0.7)]


def test_in_real_time_mode_a_batch_has_a_lag_but_no_duration():
    (point,) = points(Event(1, batch_ms=None, processed_rows_per_second=None))
    unknown = {name for name, value in point.items() if value != value}  # noqa: PLR0124 - not a number
    assert unknown == {
        "processed_per_second", "batch_seconds", "reading_seconds", "planning_seconds", "processing_seconds", "committing_seconds",
    }  # fmt: skip
    assert point["lag"] == 5


def test_the_rows_of_batches_within_five_seconds_are_added_up_and_a_sink_that_counts_none_has_none():
    found = points(Event(1), Event(4), Event(1, "archive", sink_rows=None))
    assert [(point["query"], point["sink_rows"], point["too_late"]) for point in found] == [
        ("archive", 0.0, 1.0), ("counts", 14.0, 2.0),
    ]  # fmt: skip


def test_waiting_is_no_rows_a_second_and_no_batch():
    (point,) = points(Event(1, event="idle"))
    assert point["rows_per_second"] == 0
    assert point["batch_seconds"] != point["batch_seconds"], "not a number"


def test_a_watermark_ahead_of_the_clock_is_not_behind_it():
    (point,) = points(Event(1, watermark_age_ms=-5_000))
    assert point["watermark_age_seconds"] == 0


def test_a_line_ends_where_nothing_was_told_for_long():
    found = points(Event(0), Event(60), Event(300), Event(310), Event(0, "archive"), Event(300, "archive"))
    assert [(point["query"], point["stretch"]) for point in found] == [
        ("archive", 0), ("archive", 1), ("counts", 1), ("counts", 1), ("counts", 2), ("counts", 2),
    ]  # fmt: skip


def test_a_line_ends_where_the_query_was_started_again():
    found = points(Event(0), Event(5), Event(20, event="started"), Event(30))
    assert [point["stretch"] for point in found] == [0, 0, 1, 1]


def test_nothing_told_is_nothing_drawn():
    assert points() == []


@pytest.mark.parametrize("fields", [{"query": 7}, {"time": "yesterday"}, {"batch_ms": "long"}, {"source_lag": None}])
def test_what_is_no_event_is_refused(fields):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        decode_point(Event(1, **fields))
