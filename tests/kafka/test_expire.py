"""`streamgauge expire` on a real broker: what it deletes, and what readers then see."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from plain import read_topic
from running import eventually, streamgauge, succeed

from infrastructure.kafka import writing
from infrastructure.kafka.follower import Follower
from infrastructure.kafka.result_table import read_to_end
from streamgauge.operations.expiry import expire

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
GROUPS = {
    "nest-camera-stats": {"zip_code": "94103"},
    "taxi-borough-stats": {"borough": "Queens"},
    "wikimedia.processed": {"requested_by": "Bot"},
    "wikimedia-wiki-stats": {"namespace": 0, "wiki": "enwiki"},
}


def row(topic, start):
    """Key and value of a row, as the queries write them; what Avro has for a value is no matter here."""
    window = {"end": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
    content = {**GROUPS[topic], "window": window}
    value = b"\x00\x00\x00\x00\x07 Avro" if topic == "wikimedia.processed" else json.dumps({**content, "count": 1}).encode()
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode(), value


def write_rows(settings, topic, days):
    """A row at noon of each day, so many days after the first of March 2024."""
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers})
    for day in days:
        key, value = row(topic, NOON + timedelta(days=day))
        producer.produce(topic, value, key)
    assert producer.flush(10) == 0


def days_of(settings, topic):
    keys = read_to_end(settings.kafka, topic, lambda _: {}).keys()
    return sorted((datetime.fromisoformat(json.loads(key)["window"]["start"]) - NOON).days for key in keys)


def test_each_table_loses_what_is_older_than_the_retention_behind_its_own_newest_window(fresh):
    for topic in GROUPS:
        write_rows(fresh, topic, range(60 if topic != "wikimedia-wiki-stats" else 20))
    dry = succeed("expire", "--dry-run", settings=fresh)
    assert "nest-camera-stats: 25 of 60 rows would be deleted, windows that ended by 2024-03-25T13:00:00Z" in dry.stdout.splitlines()
    assert days_of(fresh, "nest-camera-stats") == list(range(60)), "a dry run deletes nothing"

    done = succeed("expire", settings=fresh)
    for topic in ("nest-camera-stats", "taxi-borough-stats", "wikimedia.processed"):
        assert f"{topic}: 25 of 60 rows deleted, windows that ended by 2024-03-25T13:00:00Z" in done.stdout.splitlines()
        assert days_of(fresh, topic) == list(range(25, 60))
    assert days_of(fresh, "wikimedia-wiki-stats") == list(range(20))
    deleted = read_topic(fresh, "nest-camera-stats")[-25:]
    assert [message.value() for message in deleted] == [None] * 25

    again = streamgauge("expire", settings=fresh)
    assert "nest-camera-stats: nothing to delete" in again.stdout
    assert read_topic(fresh, "nest-camera-stats")[-1].offset() == deleted[-1].offset(), "a second round has nothing to write"


def test_a_page_and_a_report_lose_the_rows_too(fresh):
    write_rows(fresh, "nest-camera-stats", range(40))
    follower = Follower(fresh.kafka, "nest-camera-stats")
    try:
        eventually(lambda: len(follower.snapshot.rows) == 40, "the page to have all rows")
        succeed("expire", settings=fresh)
        eventually(lambda: len(follower.snapshot.rows) == 35, "the page to have lost the expired ones")
        assert not follower.snapshot.unreadable
    finally:
        follower.stop()
    report = json.loads(streamgauge("report", "nest-camera-stats", "--format", "json", settings=fresh).stdout)
    assert len(report) == 35


def test_a_null_reaches_its_row_whatever_the_partitions(fresh, monkeypatch):
    from confluent_kafka.admin import AdminClient, NewTopic

    monkeypatch.setattr(writing, "RECORDS_AT_ONCE", 30)
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    admin.create_topics([NewTopic("wide", num_partitions=5, config={"cleanup.policy": "compact"})])["wide"].result()
    eventually(lambda: "wide" in admin.list_topics().topics, "the topic")
    keys = [f"key-{number}".encode() for number in range(100)]
    spark_like = Producer({"bootstrap.servers": fresh.bootstrap_servers, "partitioner": "murmur2_random"})
    for key in keys:
        spark_like.produce("wide", b"{}", key)
    assert spark_like.flush(10) == 0
    writing.write_rows(fresh.kafka, "wide", dict.fromkeys(keys))
    where = {}
    records = read_topic(fresh, "wide")
    assert sum(message.value() is None for message in records) == len(keys), "each is deleted once"
    for message in records:
        where.setdefault(message.key(), set()).add(message.partition())
    assert {len(partitions) for partitions in where.values()} == {1}, "a row and its null are in different partitions"


def test_a_query_that_goes_on_counts_the_same_after_a_round(fresh):
    from plain import counts_of, one_camera, results, write_topic

    sightings = [(f"cam-{number}", NOON + timedelta(hours=6 * number)) for number in range(160)]
    for part in (sightings[:155], [*sightings[155:], ("late-cam", sightings[154][1])]):
        write_topic(fresh, "nest-logs", [one_camera(*sighting) for sighting in part])
        succeed("run", "nest-camera-stats", "--once", settings=fresh)
        list(expire(fresh, dry_run=False))
    limit = sightings[-1][1] + timedelta(hours=1) - timedelta(days=35)
    kept = [(device, time) for device, time in [*sightings, ("late-cam", sightings[154][1])] if time + timedelta(hours=1) > limit]
    assert results(fresh) == counts_of((device, time.isoformat()) for device, time in kept)
    assert 0 < len(kept) < len(sightings)


@pytest.mark.usefixtures("soon_away")
@pytest.mark.parametrize(
    ("arguments", "variables", "code", "message"),
    [
        ((), {"STREAMGAUGE_RESULT_RETENTION": "2 days"}, 2, "expected more than 7 days, 1:10:00"),
        ((), {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}, 3, "no Kafka answers at 127.0.0.1:9"),
    ],
)
def test_what_cannot_be_is_one_clear_line(settings, arguments, variables, code, message):
    done = streamgauge("expire", *arguments, settings=settings, **variables)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
