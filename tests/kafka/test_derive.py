"""Tables derived from tables, by the command: an archive and a result topic in one query."""

import json

import pytest
from messages import refused
from plain import write_counts
from running import one_line_error, streamgauge, succeed
from verifying import run_once

from pipeline.lake.derived_tables import derive

pytestmark = pytest.mark.delta

PEOPLE = ("people", "select hour(window.start) as hour, sum(count) as people from live_nest_camera_stats group by all")


def derived(settings, *options, code=0):
    done = streamgauge("derive", *options, settings=settings)
    assert done.returncode == code, done.stderr
    return done.stdout


def held(settings, table):
    done = streamgauge("query", f"select * from {table} order by all", "--format", "json", settings=settings)
    return json.loads(done.stdout)


def test_the_example_is_derived_from_an_archive_and_a_topic(fresh):
    succeed("produce", "taxi", "--unpaced", "--limit", "20", settings=fresh)
    run_once(fresh, "taxi-archive")
    write_counts(fresh, {12: 2})
    assert derived(fresh) == "derived_sightings_and_trips: created\n"
    (row,) = held(fresh, "derived_sightings_and_trips")
    (trips,) = held(fresh, "(select count(*) as n from taxi_trips_distinct where hour(dropoff) = 12)")
    assert row == {"zip_code": "unknown", "hour": 12, "people": 2, "trips": trips["n"]}
    assert derived(fresh, "--check") == "derived_sightings_and_trips: unchanged\n"
    write_counts(fresh, {13: 2})
    assert derived(fresh, "sightings_and_trips", "--check", code=1) == "derived_sightings_and_trips: different\n"
    assert "no derived table other; there are sightings_and_trips" in one_line_error(streamgauge("derive", "other", settings=fresh))


def test_the_same_rows_are_not_written_again_and_others_replace_them(fresh, spark):
    def versions():
        from delta.tables import DeltaTable

        return DeltaTable.forPath(spark, str(fresh.lake / "derived" / "people")).history().count()

    write_counts(fresh, {12: 2})
    assert [derive(*PEOPLE, spark, fresh) for _ in range(2)] == ["created", "unchanged"]
    assert versions() == 1
    write_counts(fresh, {13: 2})
    assert derive(*PEOPLE, spark, fresh) == "replaced"
    assert held(fresh, "derived_people") == [{"hour": 12, "people": 2}, {"hour": 13, "people": 2}]


@pytest.mark.parametrize(
    ("sql", "reason"), [("drop table x", "only queries are allowed"), ("select * from derived_people", "no table derived_people")]
)
def test_what_is_not_a_query_over_source_tables_is_refused(settings, spark, sql, reason):
    with refused(reason):
        derive("bad", sql, spark, settings)
