"""`streamgauge reset` and `clean` on a real broker: what is deleted, and that the next run gives what a first run gives."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import orjson
import pyarrow.dataset as ds
import pytest
from avro import V1, change
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from plain import counts_of, one_camera, read_topic, results, write_topic
from running import eventually, one_line_error, running_queries, streamgauge

from contract.checkpoints.names import CheckpointName, remains_of
from infrastructure.kafka.result_table import read_to_end

START = datetime(2026, 1, 1, tzinfo=UTC)
SIGHTINGS = [(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(300)]


def ok(done):
    assert done.returncode == 0, done.stderr
    return done


def letters(settings):
    """Key, value, timestamp and headers of every dead letter, with how often it is there."""
    found = read_topic(settings, "dead-letters")
    return Counter((letter.key(), letter.value(), letter.timestamp(), tuple(letter.headers() or ())) for letter in found)


def about(found, topic):
    """The letters about records of `topic`, without the times at which they were written."""
    counted = Counter()
    for (key, value, _, headers), count in found.items():
        if orjson.loads(key)["topic"] == topic:
            counted[key, value, headers] += count
    return counted


def archived(settings):
    table = ds.dataset(settings.lake / "nest" / "cameras", format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return Counter(
        (row["partition"], row["offset"], row["device_id"]) for row in table.select(["partition", "offset", "device_id"]).to_pylist()
    )


def test_of_one_domain_all_kinds_of_results_are_made_again_as_at_first_and_those_of_others_stay(fresh):
    write_topic(fresh, "nest-logs", [*(one_camera(*sighting) for sighting in SIGHTINGS), b"rubbish", None, b"{}"])
    write_topic(fresh, "nyc-taxi", [b"no trip", b'{"lpep_dropoff_datetime": 1709290800000, "PULocationID": 74}'])
    ok(streamgauge("run", "nest-camera-stats", "nest-archive", "taxi-borough-stats", "--once", settings=fresh))
    counted, cameras, before = results(fresh), archived(fresh), letters(fresh)
    assert counted == counts_of((device, time.isoformat()) for device, time in SIGHTINGS)
    taxi_files = sorted(fresh.checkpoints.glob("taxi-*/offsets/*"))

    for query, what in {
        "nest-camera-stats": f"topic nest-camera-stats: its {len(counted)} rows, by null values",
        "nest-archive": f"table {fresh.lake / 'nest' / 'cameras'}, ",
        "nest-dead-letters": "note: what is in topic dead-letters stays; the next run writes it again, with the same keys",
    }.items():
        done = ok(streamgauge("reset", query, "--yes", settings=fresh))
        assert what in done.stdout
        assert f"checkpoint {query}-v1-" in done.stdout
        assert f"deleted; {query} recounts from the start at its next run" in done.stdout
        assert [path.name for path in remains_of(query, fresh) if path.suffix != ".lock"] == []
        again = ok(streamgauge("reset", query, "--yes", settings=fresh))
        assert again.stdout == f"nothing to delete: {query} is as before its first run\n"
    assert results(fresh) == {}
    assert not (fresh.lake / "nest" / "cameras").exists()
    assert letters(fresh) == before, "letters stay"
    assert sorted(fresh.checkpoints.glob("taxi-*/offsets/*")) == taxi_files

    ok(streamgauge("run", "nest-camera-stats", "nest-archive", "--once", settings=fresh))
    assert (results(fresh), archived(fresh)) == (counted, cameras)
    once, twice = (about(found, "nest-logs") for found in (before, letters(fresh)))
    assert twice == Counter({letter: 2 * count for letter, count in once.items()}), "the same letters again, with the same keys"


def test_an_avro_table_is_made_again_as_at_first(fresh_registry):
    serialize = AvroSerializer(SchemaRegistryClient({"url": fresh_registry.registry_url}), V1)
    context = SerializationContext("wikimedia", MessageField.VALUE)
    start = int(START.timestamp())
    write_topic(
        fresh_registry, "wikimedia", (serialize(change(number, at=start + number, bot=number % 3 == 0), context) for number in range(200))
    )

    def table():
        report = ok(streamgauge("report", "wikimedia-edit-stats", "--format", "json", settings=fresh_registry))
        return json.loads(report.stdout)

    ok(streamgauge("run", "wikimedia-edit-stats", "--once", settings=fresh_registry))
    first = table()
    assert sum(row["counts"] for row in first) == 400
    done = ok(streamgauge("reset", "wikimedia-edit-stats", "--yes", settings=fresh_registry))
    assert f"topic wikimedia.processed: its {len(first)} rows" in done.stdout
    assert table() == []
    ok(streamgauge("run", "wikimedia-edit-stats", "--once", settings=fresh_registry))
    assert table() == first


def test_every_version_and_mode_goes_with_what_lies_beside_it_and_nothing_else(fresh):
    gone = [
        "nest-camera-stats-v1-update",
        "nest-camera-stats-v1-update.driver",
        "nest-camera-stats-v1-update.journal",
        "nest-camera-stats-v2-complete",
        "nest-camera-stats-v12-append.topics",
    ]
    stays = ["nest-camera-stats-console-v1-complete", "nest-camera-stats-old", "nest-archive-v1-append", "my-nest-camera-stats-v1-update"]
    for name in (*gone, *stays):
        path = fresh.checkpoints / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("") if path.suffix else path.mkdir()
    ok(streamgauge("reset", "nest-camera-stats", "--yes", settings=fresh))
    assert sorted(path.name for path in fresh.checkpoints.iterdir() if path.suffix != ".lock") == sorted(stays)
    ok(streamgauge("reset", "nest-camera-stats-console", "--yes", settings=fresh))
    assert not (fresh.checkpoints / "nest-camera-stats-console-v1-complete").exists()


def test_rows_that_cannot_be_read_go_too(fresh):
    producer = Producer({"bootstrap.servers": fresh.bootstrap_servers})
    producer.produce("nest-camera-stats", b"rubbish", b"rubbish")
    assert producer.flush(10) == 0
    ok(streamgauge("reset", "nest-camera-stats", "--yes", settings=fresh))
    table = read_to_end(fresh.kafka, "nest-camera-stats")
    assert (table.rows(), table.unreadable) == ([], {})


def test_a_query_that_runs_is_refused_with_its_pid_and_so_is_cleaning(spark, fresh):
    write_topic(fresh, "nest-logs", [one_camera(*SIGHTINGS[0])])
    driver = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    with running_queries("nest-camera-stats", settings=fresh):
        eventually(lambda: results(fresh), "the first result")
        line = one_line_error(streamgauge("reset", "nest-camera-stats", "--yes", settings=fresh))
        assert f"query nest-camera-stats is already running in another process (its Spark driver is pid {driver})" in line
        cleaned = streamgauge("clean", "--yes", settings=fresh)
        assert cleaned.returncode == 2
        assert f"in use (its Spark driver is pid {driver})" in cleaned.stderr
        assert results(fresh), "what was refused has deleted nothing"


def test_records_that_kafka_no_longer_has_are_mentioned(fresh):
    write_topic(fresh, "nest-logs", [one_camera(*sighting) for sighting in SIGHTINGS], partitions=3)
    (fresh.checkpoints / str(CheckpointName("nest-camera-stats", 1, "update"))).mkdir(parents=True)
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    next(iter(admin.delete_records([TopicPartition("nest-logs", 1, 40)]).values())).result()
    done = ok(streamgauge("reset", "nest-camera-stats", "--yes", settings=fresh, STREAMGAUGE_STARTING_OFFSETS="latest"))
    assert "note: topic nest-logs no longer has its first 40 records: their results are not computed again" in done.stdout
    assert "note: the next run starts at STREAMGAUGE_STARTING_OFFSETS=latest" in done.stdout


@pytest.mark.usefixtures("soon_away")
@pytest.mark.parametrize(
    ("arguments", "variables", "code", "message"),
    [
        (("nest",), {}, 2, "no query nest; there are nest-camera-stats, "),
        (("nest-camera-stats",), {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}, 3, "no Kafka answers at 127.0.0.1:9"),
    ],
)
def test_what_cannot_be_is_one_clear_line(settings, arguments, variables, code, message):
    done = streamgauge("reset", *arguments, "--yes", settings=settings, **variables)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_table_behind_a_link_and_no_terminal_are_refused(fresh, tmp_path):
    (fresh.lake / "nest").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (fresh.lake / "nest" / "cameras").symlink_to(tmp_path / "elsewhere")
    done = streamgauge("reset", "nest-archive", "--yes", settings=fresh)
    assert done.returncode == 2
    assert "a reset does not follow links" in done.stderr
    (fresh.checkpoints / "nest-camera-stats-v1-update").mkdir(parents=True)
    done = streamgauge("reset", "nest-camera-stats", settings=fresh)
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert (fresh.checkpoints / "nest-camera-stats-v1-update").exists()
