"""Rows of topic query-states and a moment in, statuses out; and how they are shown."""

import json
import re
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from rich.console import Console

from contract.query_status import SILENT_AFTER, decode_state, offsets_of, source_partitions, statuses
from streamgauge.operations.status_table import NOTHING, as_json, as_table

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ERROR = {"error": "boom", "error_detail": "boom\nby a bomb", "error_at": "2026-11-21T11:58:00.000Z"}


OPERATOR = {"operator": "dedupe", "rows": 10, "bytes": 1_500_000, "timers": None}


def text(seconds_before_noon):
    return f"{NOON - timedelta(seconds=seconds_before_noon):%Y-%m-%dT%H:%M:%S}.000Z"


def progress(**fields):
    return {
        "time": text(1),
        "input_rows_per_second": 80.0,
        "processed_rows_per_second": 100.0,
        "batch_ms": 400,
        "watermark": text(600),
        "state_rows": 10,
        "state_bytes": 1_500_000,
        "state_operators": [OPERATOR],
        "rows_dropped_by_watermark_total": 3,
        "source_lag": {"a-0": 5, "a-1": 1},
        **fields,
    }


def value(query="counts", state="running", heard=1, **fields):
    row = {
        "query": query,
        "state": state,
        "since": text(60),
        "time": text(heard),
        "started_at": text(60),
        "process": {"host": "here", "pid": 7},
        "run_id": "run-1",
        "error": None,
        "error_detail": None,
        "error_at": None,
        "source_offsets": {"a-0": 10, "a-1": 20},
        "progress": progress(),
        **fields,
    }
    return orjson.dumps(row)


def status(topic_ends=None, **fields):
    (found,) = statuses([decode_state(value(**fields))], NOON, topic_ends or {})
    return found


def test_a_query_that_runs():
    assert status().as_row() == {
        "query": "counts",
        "state": "running",
        "since": text(60),
        "heard_at": text(1),
        "started_at": text(60),
        "host": "here",
        "pid": 7,
        "batch_at": text(1),
        "input_rows_per_second": 80.0,
        "processed_rows_per_second": 100.0,
        "batch_ms": 400,
        "lag": 6,
        "worst_partition": "a-0",
        "worst_partition_lag": 5,
        "watermark": text(600),
        "watermark_age_ms": 600_000,
        "state_rows": 10,
        "state_bytes": 1_500_000,
        "state_operators": [OPERATOR],
        "late_rows": 3,
        "error": None,
        "error_at": None,
        "error_detail": None,
    }


def test_a_row_of_an_earlier_version_has_no_operators():
    earlier = progress()
    del earlier["state_operators"]
    assert status(progress=earlier).state_operators == []


def test_lag_counts_to_the_end_that_the_topic_has_now():
    found = status({"a-0": 11, "a-1": 27, "b-0": 1_000}, state="stopped", heard=3_600)
    assert (found.lag, found.worst_partition, found.worst_partition_lag) == (8, "a-1", 7)


def test_a_query_that_waits_takes_nothing_in_and_one_that_stopped_has_no_rates():
    assert (status(state="idle").input_rows_per_second, status(state="idle").processed_rows_per_second) == (0.0, 0.0)
    assert (status(state="stopped").input_rows_per_second, status(state="stopped").processed_rows_per_second) == (None, None)


def test_a_query_without_a_batch_yet_has_no_measures():
    found = status(progress=None, source_offsets={})
    assert (found.state, found.lag, found.batch_ms, found.watermark) == ("running", None, None, None)


def test_a_query_that_goes_on_from_a_checkpoint_has_a_lag_before_its_first_batch():
    found = status(progress=None, topic_ends={"a-0": 17, "a-1": 20})
    assert (found.lag, found.worst_partition, found.worst_partition_lag, found.batch_ms) == (7, "a-0", 7, None)


def test_a_row_of_an_earlier_version_is_read_too():
    row = orjson.loads(value(progress=progress(source_offsets={"a-0": 10, "a-1": 20})))
    del row["source_offsets"]
    assert offsets_of(decode_state(orjson.dumps(row))) == {"a-0": 10, "a-1": 20}
    del row["progress"]["source_offsets"]
    assert offsets_of(decode_state(orjson.dumps(row))) == {}


def test_a_query_that_is_to_start_without_having_failed_is_starting_and_no_trouble():
    starting = status(state="restarting", progress=None, source_offsets={})
    assert (starting.state, starting.is_trouble, starting.has_process, starting.lag) == ("starting", False, True, None)
    assert status(state="restarting", heard=99).state == "silent"
    assert "STARTING" not in printed(starting)
    assert "starting" in printed(starting)


@pytest.mark.parametrize("told", ["running", "idle", "restarting"])
def test_a_query_that_ran_and_is_not_heard_of_is_silent(told):
    limit = SILENT_AFTER.total_seconds()
    heard = status(state=told, heard=limit, **ERROR)
    assert (heard.state, heard.has_process) == (told, True)
    silent = status(state=told, heard=limit + 1, **ERROR)
    assert (silent.state, silent.since, silent.is_trouble, silent.has_process) == (
        "silent",
        NOON - SILENT_AFTER - timedelta(seconds=1),
        True,
        False,
    )


def test_a_query_that_ended_stays_so_however_long_ago():
    assert status(state="stopped", heard=1_000_000).state == "stopped"
    failed = status(state="failed", heard=1_000_000, **ERROR)
    assert (failed.state, failed.error, failed.error_detail) == ("failed", "boom", "boom\nby a bomb")


def test_a_clock_that_is_ahead_makes_nobody_silent():
    assert status(heard=-3_600).state == "running"


def test_troubles_come_first():
    told = [("b", "running", 1), ("a", "idle", 1), ("d", "stopped", 1), ("c", "running", 99), ("e", "failed", 1), ("f", "restarting", 1)]
    rows = [decode_state(value(query, state, heard, **ERROR)) for query, state, heard in told]
    assert [(found.query, found.state) for found in statuses(rows, NOON, {})] == [
        ("e", "failed"),
        ("c", "silent"),
        ("f", "restarting"),
        ("d", "stopped"),
        ("a", "idle"),
        ("b", "running"),
    ]


def test_the_partitions_to_ask_for():
    assert source_partitions([decode_state(value(progress=None)), decode_state(value(source_offsets={}))]) == ["a-0", "a-1"]


@pytest.mark.parametrize(
    "spoilt",
    [
        b"rubbish",
        b"[]",
        b"{}",
        value(state="flying"),
        value(since="yesterday"),
        value(time="2026-11-21T10:00:00"),
        value(process={"host": "here", "pid": "seven"}),
        value(error=7),
        value(progress=progress(batch_ms="long")),
        value(progress=progress(source_lag={"a-0": None})),
        value(progress=progress(state_operators=[OPERATOR | {"rows": "many"}])),
        value(progress={}),
        value(source_offsets={"a-0": "ten"}),
        value(source_offsets={"logs": 5}),
    ],
)
def test_a_value_that_is_no_state_is_refused(spoilt):
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode_state(spoilt)


def printed(*found, width=160, alerts=()):
    console = Console(width=width, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(as_table(found, NOON, width, alerts))
    return captured.get()


def test_the_table_says_what_is_wrong_in_capitals_and_the_last_error_below():
    table = printed(status(state="failed", **ERROR), status(query="other"))
    assert " FAILED " in table
    assert "running" in table
    assert re.search(r"counts\b.*\b2 min\b.*\bboom", table), table
    assert "a-0 (5)" in table
    assert "10 min" in table


def test_alerts_are_lines_below_the_table():
    alert = {"time": NOON - timedelta(minutes=3), "level": "warning", "query": "pipeline", "what": "executor 0 [red]has ended[/]"}
    assert printed(status(), alerts=[alert]).splitlines()[-1] == "warning, 3 min ago: pipeline: executor 0 [red]has ended[/]"


def test_names_and_errors_of_the_topic_are_no_markup_of_the_terminal():
    table = printed(status(query="[red]x[/]", state="failed", **ERROR | {"error": "[link=http://x]y[/link]"}))
    assert "[red]x[/]" in table
    assert "[link=http://x]y[/link]" in table


def test_names_and_errors_of_the_topic_cannot_steer_the_terminal():
    table = printed(status(query="\x1b[2Jx", state="failed", **ERROR | {"error": "\x1b]0;title\x07y\nz"}))
    assert "\x1b" not in table
    assert "\x07" not in table
    assert "y z" in table


def test_json_is_an_array_of_the_fields_and_nothing_is_nothing():
    assert json.loads(as_json([status()])) == [status().as_row()]
    assert json.loads(as_json([])) == []
    assert printed().strip() == NOTHING


def test_a_narrow_terminal_is_spared_columns_and_not_names():
    table = printed(status(query="nest-camera-stats", state="failed", **ERROR), width=70)
    assert "nest-camera-stats" in table
    assert " FAILED " in table
    assert re.search(r"do not fit: MB, worst partition", table), "what is left out is named"
    assert max(map(len, table.splitlines())) <= 70
