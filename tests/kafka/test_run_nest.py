"""`streamgauge run --once` on a real broker: the result topic against a plain-Python count of what is in the source topic."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import verifying
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from plain import counts_of, dropped, folded, one_camera, read_topic, results, sightings_of, write_topic
from running import start_server, streamgauge

from streamgauge.platform.kafka import EmbeddedKafka

START = datetime(2026, 1, 1, tzinfo=UTC)
FAULTS = ("--late", "0.05", "--too-late", "0.01", "--duplicates", "0.02", "--corrupt", "0.01")


def produced(settings, *arguments):
    done = streamgauge("produce", "nest", "--json", "--unpaced", "--start", "2026-01-01T00:00:00Z", *arguments, settings=settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def run_once(settings, query="nest-camera-stats", *options, **variables):
    done = streamgauge("run", query, *options, "--once", settings=settings, **variables)
    assert done.returncode == 0, done.stderr
    return done


def source_values(settings):
    return [message.value() for message in read_topic(settings, "nest-logs")]


def test_result_equals_a_plain_count_and_the_dead_letters_the_corrupt_records(fresh):
    summary = produced(fresh, "--limit", "3000", "--seed", "7", *FAULTS)
    run_once(fresh)
    everything = set().union(*map(sightings_of, source_values(fresh)))
    assert results(fresh) == counts_of(everything), "the whole topic in one batch: nothing can be late, so all must count"
    assert sum(results(fresh).values()) == summary["people_seen"]
    letters = read_topic(fresh, "dead-letters")
    assert len(letters) == summary["corrupt"] > 0
    assert {dict(letter.headers())["topic"] for letter in letters} == {b"nest-logs"}

    report = streamgauge("report", "nest-camera-stats", "--format", "json", settings=fresh)
    rows = json.loads(report.stdout)
    assert {(row["zip_code"], row["window"]["start"]): row["count"] for row in rows} == results(fresh)
    assert rows == sorted(rows, key=lambda row: (row["window"]["start"], row["zip_code"]))
    largest = max(row["count"] for row in rows)
    highest = streamgauge("report", "nest-camera-stats", "--format", "json", "--min-count", str(largest), settings=fresh)
    assert json.loads(highest.stdout) == [row for row in rows if row["count"] == largest]


def test_nothing_stops_the_stream(fresh):
    zones = [{"name": "zone", "id": "x" * 1000}] * 5000
    good = one_camera("cam-1", START)
    large = one_camera("cam-2", START, activity_zones=zones)
    assert len(large) > 5_000_000
    rubbish = [None, b"", b"\xff\xfe\x00", b"not JSON", good[:-7], b"{}", b"[]", b"\x00" * 5_000_000]
    harmless = [b'{"devices": {}}', b'{"devices": {"cameras": null}}', b'{"devices": {"cameras": {"a": null}}}']
    write_topic(fresh, "nest-logs", [good, *rubbish, *harmless, large])
    run_once(fresh)
    assert sum(results(fresh).values()) == 2
    letters = read_topic(fresh, "dead-letters")
    assert sorted(letter.value() or b"" for letter in letters) == sorted(value or b"" for value in rubbish), (
        "the dead letters are not the bytes that were sent"
    )
    reasons = {dict(letter.headers())["reason"] for letter in letters}
    assert reasons == {b"empty", b"not UTF-8", b"not JSON", b"no devices"}


def test_starting_offsets_by_partition(fresh):
    write_topic(fresh, "nest-logs", [one_camera(f"cam-{number}", START) for number in range(30)])
    skipped = json.dumps({"nest-logs": {"0": -1, "1": -1, "2": -1}})
    run_once(fresh, "nest-camera-stats", STREAMGAUGE_STARTING_OFFSETS=skipped)
    assert results(fresh) == {}


def test_partitions_that_are_added_are_read(fresh):
    write_topic(fresh, "nest-logs", [one_camera(f"cam-{number}", START) for number in range(30)], partitions=3)
    run_once(fresh)
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    admin.create_partitions([NewPartitions("nest-logs", 5)])["nest-logs"].result()
    write_topic(fresh, "nest-logs", [one_camera(f"later-{number}", START) for number in range(50)], partitions=5)
    run_once(fresh)
    assert sum(results(fresh).values()) == 80
    assert dropped(fresh, "nest-camera-stats") == 0


def test_records_gone_before_they_were_read_stop_the_query_with_the_two_ways_out(fresh):
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)] * 9, partitions=3)
    run_once(fresh)
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)] * 300, partitions=3)
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    for cut in admin.delete_records([TopicPartition("nest-logs", number, 50) for number in range(3)]).values():
        cut.result()
    done = streamgauge("run", "nest-camera-stats", "--once", settings=fresh)
    assert done.returncode == 2
    assert "gone from Kafka: removed by retention" in done.stderr
    assert "STREAMGAUGE_FAIL_ON_DATA_LOSS=false" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_query_that_has_read_records_that_its_broker_lost_names_the_partition(own_broker):
    write_topic(own_broker, "nest-logs", [one_camera("cam-1", START)] * 20, to=0)
    write_topic(own_broker, "nest-logs", [one_camera("cam-1", START)], to=0)
    run_once(own_broker)
    broker = EmbeddedKafka(own_broker)
    broker.process.kill()
    broker.stop()
    (segment,) = (broker.folder / "data" / "nest-logs-0").glob("*.log")
    os.truncate(segment, segment.stat().st_size - 1)  # its last batch, of one record, is torn
    start_server(broker)
    done = streamgauge("run", "nest-camera-stats", "--once", settings=own_broker)
    assert done.returncode == 2
    assert "Kafka has lost records that it had read: nest-logs-0 ends at 20 and was read to 21. Two ways out: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nest-camera-stat"), "no query nest-camera-stat; there are nest-camera-stats"),
        (("run", "--mode", "complete"), "--mode and --console require the names of queries"),
        (("run", "nest-archive", "--mode", "often"), "'often' is not one of 'append', 'update', 'complete'"),
        (("report", "nest-archive"), "no result table nest-archive; there are nest-camera-activity, "),
    ],
)
def test_a_wrong_word_gets_one_clear_line(settings, arguments, message):
    done = streamgauge(*arguments, settings=settings)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_crowds_run_by_name_and_verify_proves_them(fresh):
    for hour in ("10", "13"):
        summary = produced(fresh, "--limit", "1500", "--speed-up", "100", "--start", f"2026-01-01T{hour}:00:00Z", *FAULTS)
        assert summary["people_seen"] > 100
        verifying.run_once(fresh, "nest-crowds", crowd=20)
    found = streamgauge("verify", "nest-crowds", "--format", "json", settings=fresh, STREAMGAUGE_CROWD="20")
    (outcome,) = json.loads(found.stdout)
    assert outcome["rows"]["equal"] == outcome["rows"]["compared"] == len(folded(fresh, "nest-crowds")) > 0
    assert {row["crowd"] for row in folded(fresh, "nest-crowds").values()} == {20}


def test_the_activity_of_cameras_runs_by_name_and_verify_proves_it_with_its_tombstones(fresh):
    fresh = replace(fresh, inactive_after="1 hour")
    for start in ("10", "13"):
        produced(fresh, "--limit", "400", "--speed-up", "100", "--start", f"2026-01-01T{start}:00:00Z", *FAULTS)
        verifying.run_once(fresh, "nest-camera-activity")
    (outcome,) = json.loads(streamgauge("verify", "nest-camera-activity", "--format", "json", settings=fresh).stdout)
    table = folded(fresh, "nest-camera-activity")
    assert outcome["rows"]["equal"] == outcome["rows"]["compared"] == len(table) > 0
    assert {row["first_activity"][:13] for row in table.values()} == {"2026-01-01T13"}, "who was active at ten only is gone"
