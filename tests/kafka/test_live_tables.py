"""Result topics as tables for SQL: `streamgauge query` beside the lake, on a real broker and a real registry."""

import json
from datetime import UTC, datetime

from avro import change, serialized
from plain import write_counts, write_topic
from running import one_line_error, streamgauge, succeed
from verifying import run_once

from infrastructure.process.ports import free_ports

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BY_HOUR = "select window.start as hour, sum(count) as people from live_nest_camera_stats group by hour order by hour"


def ask(settings, sql):
    return json.loads(succeed("query", sql, "--format", "json", settings=settings).stdout)


def test_a_row_is_the_last_value_of_its_key_and_a_tombstone_deletes_it(fresh):
    write_counts(fresh, {12: 2, 13: 1})
    write_counts(fresh, {12: 3})
    rows = [{"hour": "2026-01-01T12:00:00Z", "people": 3}, {"hour": "2026-01-01T13:00:00Z", "people": 1}]
    assert ask(fresh, BY_HOUR) == rows
    write_counts(fresh, {13: None})
    assert ask(fresh, BY_HOUR) == rows[:1]


def test_avro_values_are_decoded(fresh_registry):
    changes = [change(number, at=int(NOON.timestamp()), bot=number > 1) for number in range(3)]
    write_topic(fresh_registry, "wikimedia", serialized(fresh_registry, changes))
    run_once(fresh_registry, "wikimedia-edit-stats")
    rows = ask(fresh_registry, "select requested_by, counts, window.end as until from live_wikimedia_processed order by all")
    ends = ["2026-01-01T12:00:30Z", "2026-01-01T12:01:00Z"]
    assert rows == [{"requested_by": who, "counts": counts, "until": end} for who, counts in (("Bot", 1), ("Human", 2)) for end in ends]


def test_the_list_names_them_with_their_columns(settings, tmp_path):
    done = streamgauge("query", "--format", "json", settings=settings, STREAMGAUGE_HOME=str(tmp_path))
    tables = {row["table"]: row for row in json.loads(done.stdout)}
    assert list(tables) == [
        "live_nest_camera_activity",
        "live_nest_camera_stats",
        "live_nest_camera_status",
        "live_nest_crowds",
        "live_nest_temperatures",
        "live_taxi_borough_stats",
        "live_taxi_flows",
        "live_taxi_zone_sessions",
        "live_taxi_zone_sessions_early",
        "live_wikimedia_editor_sessions",
        "live_wikimedia_processed",
        "live_wikimedia_wiki_stats",
    ]
    columns = "zip_code string, window struct<start:timestamp,end:timestamp>, count bigint"
    assert tables["live_nest_camera_stats"] == {
        "table": "live_nest_camera_stats",
        "format": "topic",
        "path": "nest-camera-stats",
        "columns": columns,
    }


def test_a_record_that_is_no_row_fails_the_query(fresh):
    write_topic(fresh, "nest-camera-stats", [b"{broken"], key=b"k")
    line = one_line_error(streamgauge("query", "select * from live_nest_camera_stats", settings=fresh))
    assert "a value in topic nest-camera-stats that is not a row of it" in line


def test_without_kafka_it_is_one_clear_error(settings, tmp_path):
    away = {"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_ports(1)[0]}", "STREAMGAUGE_HOME": str(tmp_path)}
    line = one_line_error(streamgauge("query", "select * from live_nest_camera_stats", settings=settings, **away), code=3)
    assert away["KAFKA_BOOTSTRAP_SERVERS"] in line
