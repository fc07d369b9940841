"""Queries of taxi and Wikimedia that run by name: from the producer to `verify`, `report` and `reset`."""

import json

import pytest
from plain import folded
from running import streamgauge
from verifying import run_once

from pipeline.catalog import all_queries

FAULTS = ("--late", "0.05", "--too-late", "0.02", "--duplicates", "0.03")


def ok(done):
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("domain", "query", "counted"),
    [
        ("taxi", "taxi-flows", "trips"),
        ("taxi", "taxi-zone-sessions", "trips"),
        ("taxi", "taxi-zone-sessions-early", "trips"),
        ("wikimedia", "wikimedia-editor-sessions", "edits"),
    ],
)
def test_rows_of_two_runs_are_right_reported_and_reset(fresh_registry, domain, query, counted):
    for hour in (0, 6):
        start = f"2026-01-01T{hour:02}:00:00Z"
        ok(streamgauge("produce", domain, "--limit", "400", "--unpaced", "--start", start, *FAULTS, settings=fresh_registry))
        run_once(fresh_registry, query, max_offsets_per_trigger=250)
    (outcome,) = json.loads(ok(streamgauge("verify", query, "--format", "json", settings=fresh_registry)))
    rows = outcome["rows"]
    assert rows["equal"] == rows["compared"] > 10
    (defined,) = (one for one in all_queries(fresh_registry) if one.name == query)
    reported = json.loads(ok(streamgauge("report", query, "--format", "json", settings=fresh_registry)))
    assert len(reported) == rows["equal"]
    assert all(row[counted] >= 1 for row in reported)
    assert max(row[counted] for row in reported) > 1
    ok(streamgauge("reset", query, "--yes", settings=fresh_registry))
    assert folded(fresh_registry, defined.sink.topic.name) == {}
