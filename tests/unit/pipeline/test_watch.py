"""Alerts on running queries: what is seen at which second, and the alerts that follow."""

from datetime import UTC, datetime, timedelta

import pytest

from contract.query_status import QueryStatus
from infrastructure.settings import Settings
from pipeline.monitoring.watch import QueryWatch, QueryWatches

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIMITS = {"alert_lag": 100, "alert_slow_seconds": 30, "alert_silent_seconds": 300, "alert_watermark_seconds": 200}


def seen(second, read=None, **fields):
    """What is known of a query at a second. read: the offset that it has reached; by default, it goes on."""
    now = START + timedelta(seconds=second)
    fields = {"state": "running", "lag": 0, "watermark": now, **fields}
    status = QueryStatus(query="counts", since=START, heard_at=now, started_at=START, host="here", pid=1, **fields)
    return status, {} if read == "files" else {"nest-logs-0": second if read is None else read}, now


def alerts(*looks, **limits):
    """(second, level, text) of each alert."""
    watch = QueryWatch(Settings(**LIMITS | limits))
    return [(round((look[2] - START).total_seconds()), *alert) for look in looks for alert in watch.look(*look)]


def test_a_lag_is_an_alert_after_a_minute_once_and_resolved_when_it_is_over():
    looks = [seen(0, lag=101), seen(59, lag=5000), seen(60, lag=6000), seen(61, lag=7000), seen(90, lag=100), seen(91)]
    assert alerts(*looks) == [(60, "warning", "lag: 6,000 records, limit 100, for 1 min"), (90, "resolved", "lag")]


def test_a_lag_that_was_over_meanwhile_starts_again():
    assert alerts(seen(0, lag=101), seen(50, lag=100), seen(70, lag=101), seen(129, lag=101)) == []


def test_an_input_rate_above_the_processing_rate_for_long_is_an_alert():
    fast = {"input_rows_per_second": 1000.0, "processed_rows_per_second": 950.0}
    slow = {"input_rows_per_second": 1200.0, "processed_rows_per_second": 800.0}
    found = alerts(seen(0, **fast), seen(10, **slow), seen(39, **slow), seen(40, **slow), seen(50, **fast))
    what = "input rate above processing rate"
    assert found == [(40, "warning", f"{what}: 1,200 rows/s arrive, and 800 rows/s are processed, for 30 s"), (50, "resolved", what)]


def test_a_source_without_new_records_is_an_alert_until_one_comes():
    looks = [seen(0, read=7), seen(1, read=7, state="idle"), seen(301, read=7, state="idle"), seen(400, read=8)]
    assert alerts(*looks) == [(301, "warning", "silent source: no new record, for 5 min"), (400, "resolved", "silent source")]


def test_a_query_that_reads_none_of_the_records_that_wait_is_stuck_until_it_reads_one():
    looks = [*(seen(second, read=7, lag=9) for second in (0, 1, 150, 151, 600)), seen(601, read=8)]
    assert alerts(*looks) == [(151, "warning", "stuck: it reads none of 9 waiting records, for 2 min 30 s"), (601, "resolved", "stuck")]


def test_a_query_whose_checkpoints_are_an_hour_apart_may_not_say_for_an_hour_what_it_has_read():
    looks = [seen(second, read=7, lag=1) for second in (0, 1, 3720, 3721)]
    assert [second for second, *_ in alerts(*looks, real_time="1 hour")] == [3721]


def test_a_source_of_files_is_silent_when_no_batch_ends():
    batches = [seen(second, read="files", batch_at=START + timedelta(seconds=min(second, 200))) for second in (0, 100, 200, 201, 500, 501)]
    assert alerts(*batches) == [(501, "warning", "silent source: no new record, for 5 min")]


def test_a_watermark_that_stands_still_while_records_arrive_is_an_alert():
    still = [seen(second, watermark=START) for second in (0, 10, 209, 210)]
    what = "the watermark stands still"
    assert alerts(*still, seen(220)) == [
        (210, "warning", f"{what}: it is 2026-01-01 12:00:00 UTC, for 3 min 20 s"),
        (220, "resolved", what),
    ]


def test_the_alert_on_a_watermark_names_the_partitions_to_which_no_record_comes():
    def look(second):
        status, offsets, now = seen(second, watermark=START)
        return status, {**offsets, "nest-logs-1": 7, "nest-logs-2": 0}, now

    text = "the watermark stands still: it is 2026-01-01 12:00:00 UTC, and no record comes to nest-logs-1, nest-logs-2, for 3 min 20 s"
    assert alerts(look(0), look(10), look(210)) == [(210, "warning", text)]


def test_a_watermark_stands_still_when_no_record_moves_it():
    assert alerts(*(seen(second, read=7, watermark=START) for second in (0, 1, 250))) == []


def test_a_query_without_a_watermark_has_none_that_stands_still():
    assert alerts(*(seen(second, watermark=None) for second in (0, 100, 300, 600))) == []


def test_a_query_that_does_not_run_is_not_watched():
    assert alerts(*(seen(second, state="failed", lag=1000) for second in (0, 100))) == []


@pytest.mark.parametrize(
    ("limit", "look"),
    [
        ("alert_lag", {"lag": 1000}),
        ("alert_slow_seconds", {"input_rows_per_second": 9.0, "processed_rows_per_second": 1.0}),
        ("alert_silent_seconds", {"read": 7}),
        ("alert_watermark_seconds", {"watermark": START}),
    ],
)
def test_each_can_be_switched_off(limit, look):
    looks = [seen(second, **look) for second in (0, 1, 1000)]
    assert alerts(*looks) != []
    assert alerts(*looks, **{limit: 0}) == []


def test_each_query_is_watched_by_itself():
    def row(query, offset):
        progress = {
            "time": "2026-01-01T12:00:00.000Z", "batch_ms": 1, "watermark": None, "state_rows": 0, "state_bytes": 0,
            "rows_dropped_by_watermark_total": 0, "input_rows_per_second": 0.0, "processed_rows_per_second": 0.0, "source_lag": {},
        }  # fmt: skip
        times = dict.fromkeys(("since", "started_at"), "2026-01-01T12:00:00.000Z") | {"time": datetime.now(UTC).isoformat()}
        none = dict.fromkeys(("error", "error_detail", "error_at"))
        process = {"host": "here", "pid": 1}
        return {
            "query": query,
            "state": "idle",
            "process": process,
            "source_offsets": {"a-0": offset},
            "progress": progress,
            **times,
            **none,
        }

    told = []
    watches = QueryWatches(Settings(alert_silent_seconds=0.000001), lambda *alert: told.append(alert))
    for offsets in ((1, 1), (1, 2), (1, 3)):
        watches.look([row("rests", offsets[0]), row("reads", offsets[1])], {"a-0": 0})
    assert [(level, query) for level, query, _ in told] == [("warning", "rests")]
