"""Tables derived from tables, by the command: an archive and a result topic in one query."""

import json
from datetime import UTC, datetime

import pytest
from delta.tables import DeltaTable
from messages import refused
from plain import one_camera, write_topic
from running import one_line_error, streamgauge

from pipeline.lake.derived_tables import DerivedTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PEOPLE = DerivedTable("people", "select hour(window.start) as hour, sum(count) as people from live_nest_camera_stats group by all")


def derived(settings, *options, code=0):
    done = streamgauge("derive", *options, settings=settings)
    assert done.returncode == code, done.stderr
    return done.stdout


def seen(settings, hour):
    write_topic(settings, "nest-logs", [one_camera("cam-a", NOON.replace(hour=hour)), one_camera("cam-b", NOON.replace(hour=hour))])
    assert streamgauge("run", "nest-camera-stats", "--once", settings=settings).returncode == 0


def held(settings, table):
    done = streamgauge("query", f"select * from {table} order by all", "--format", "json", settings=settings)
    return json.loads(done.stdout)


def test_the_example_is_derived_from_an_archive_and_a_topic(fresh):
    assert streamgauge("produce", "taxi", "--unpaced", "--limit", "20", settings=fresh).returncode == 0
    assert streamgauge("run", "taxi-archive", "--once", settings=fresh).returncode == 0
    seen(fresh, 12)
    assert derived(fresh) == "derived_sightings_and_trips: created\n"
    (row,) = held(fresh, "derived_sightings_and_trips")
    (trips,) = held(fresh, "(select count(*) as n from taxi_trips_distinct where hour(dropoff) = 12)")
    assert row == {"zip_code": "unknown", "hour": 12, "people": 2, "trips": trips["n"]}
    assert derived(fresh, "--check") == "derived_sightings_and_trips: unchanged\n"
    seen(fresh, 13)
    assert derived(fresh, "sightings_and_trips", "--check", code=1) == "derived_sightings_and_trips: different\n"
    assert "no derived table other; there are sightings_and_trips" in one_line_error(streamgauge("derive", "other", settings=fresh))


def test_the_same_rows_are_not_written_again_and_others_replace_them(fresh, spark):
    def versions():
        return DeltaTable.forPath(spark, str(PEOPLE.folder(fresh))).history().count()

    seen(fresh, 12)
    assert [PEOPLE.derive(spark, fresh) for _ in range(2)] == ["created", "unchanged"]
    assert versions() == 1
    seen(fresh, 13)
    assert PEOPLE.derive(spark, fresh) == "replaced"
    assert held(fresh, "derived_people") == [{"hour": 12, "people": 2}, {"hour": 13, "people": 2}]


@pytest.mark.parametrize(
    ("sql", "reason"), [("drop table x", "only queries are allowed"), ("select * from derived_people", "no table derived_people")]
)
def test_what_is_not_a_query_over_source_tables_is_refused(settings, spark, sql, reason):
    with refused(reason):
        DerivedTable("bad", sql).derive(spark, settings)
