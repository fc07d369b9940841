"""`streamgauge verify` on a real broker and registry: what is right is found right, and every kind of wrong is found and named."""

import json
import random
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from avro import V1, V2, change
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from plain import dropped, folded, one_camera, write_topic
from running import streamgauge
from verifying import differences, run_once, verified, write

from audit.commands import verdicts_of
from audit.reading.records import records_between
from audit.time_range import TimeRange, ms_of
from contract.checkpoints.names import CheckpointName
from contract.windows import utc
from infrastructure.kafka.topic_ends import first_and_end_offsets

START = datetime(2026, 1, 1, tzinfo=UTC)
STATS = "nest-camera-stats"


@contextmanager
def few_batches_kept(spark):
    """Spark forgets the plans of batches soon, and not after a hundred."""
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")


def backlog(late_duplicates=True):
    """3,000 sightings four seconds apart, among them 100 two hours late, and 50 again that counted long before."""
    rng = random.Random(1)
    values = [one_camera(f"cam-{rng.randrange(50)}", START + timedelta(seconds=4 * number)) for number in range(3000)]
    again = [(number * 37 + 1125, values[number]) for number in range(50)] if late_duplicates else []
    late = [(number * 17 + 1250, one_camera(f"late-{number}", START + timedelta(minutes=number % 30))) for number in range(100)]
    for position, value in sorted(again + late, key=lambda one: one[0]):
        values.insert(position, value)
    return values


class TestLateness:
    def test_the_late_rows_are_those_that_spark_dropped_though_it_has_forgotten_its_batches(self, spark, fresh):
        write_topic(fresh, "nest-logs", backlog(), partitions=3)
        with few_batches_kept(spark):
            run_once(fresh, STATS, max_offsets_per_trigger=375)
        folder = CheckpointName(STATS, 1, "update").folder(fresh)
        assert len([path for path in (folder / "offsets").iterdir() if path.name.isdigit()]) < 6, "Spark should have forgotten its batches"

        found = verified(fresh, STATS)
        assert found.verdict == "right", found
        assert found.records == 3150
        assert found.lateness.late_rows == dropped(fresh, STATS)
        assert 100 < found.lateness.late_rows <= 150
        assert found.lateness.late_rows - found.lateness.late_events == 50, "the repeated ones have counted: nothing is missing for them"
        assert found.lateness.events == 3100
        counted = sum(row["count"] for row in folded(fresh, "nest-camera-stats").values())
        assert counted == found.lateness.events - found.lateness.late_events
        assert found.notes == []

        folder.with_name(f"{folder.name}.journal").unlink()
        found = verified(fresh, STATS)
        assert found.verdict == "right", found
        assert found.rows.unknown_lateness > 0
        assert found.lateness.unknown_rows > 0
        assert "are not in the journal" in found.notes[0]

    def test_a_lost_event_is_not_taken_for_a_late_one(self, fresh):
        write_topic(fresh, "nest-logs", [one_camera("cam-1", START), one_camera("cam-1", START + timedelta(seconds=30))], partitions=1)
        run_once(fresh, STATS)
        assert verified(fresh, STATS).verdict == "right"
        write_topic(fresh, "nest-logs", [one_camera("cam-2", START)], partitions=1)
        lose_what_came(CheckpointName(STATS, 1, "update").folder(fresh), {"nest-logs": {"0": 3, "1": 0, "2": 0}})
        found = verified(fresh, STATS)
        assert found.verdict == "wrong"
        (expected, held) = next(iter(differences(found, "different").values()))
        assert (expected["count"], held["count"]) == (3, 2)
        assert found.lateness.late_rows == 0

    def test_a_watermark_that_ran_ahead_makes_the_table_wrong_that_lacks_what_it_dropped(self, fresh):
        punctual = [one_camera(f"cam-{number % 3}", START + timedelta(seconds=number)) for number in range(600)]
        of_2099 = one_camera("cam-1", datetime(2099, 1, 1, tzinfo=UTC))
        for part in ([*punctual[:300], of_2099], punctual[300:]):
            write_topic(fresh, "nest-logs", part, partitions=3)
            run_once(fresh, STATS, future="40000 days")
        found = verified(fresh, STATS)
        assert found.verdict == "wrong"
        assert (found.lateness.events, found.lateness.late_events, found.lateness.wrongly_late_events) == (600, 0, 300)
        assert found.faults[0].startswith("300 events count nowhere, though they came in time on their own partition")
        assert found.rows.extra == 1, "the window of 2099"
        assert {(one["count"], other["count"]) for one, other in differences(found, "different").values()} == {(600, 300)}


def lose_what_came(folder, ends):
    """Has the checkpoint say that one more batch was planned and committed, up to `ends`, of which nothing was written."""
    last = max(int(path.name) for path in (folder / "offsets").iterdir() if path.name.isdigit())
    version, metadata, *sources = (folder / "offsets" / str(last)).read_text().splitlines()
    for name, text in (("offsets", "\n".join([version, metadata, *[json.dumps(ends)] * len(sources)])), ("commits", "v1\n{}")):
        (folder / name / str(last + 1)).write_text(text)


class TestCompaction:
    def test_rows_that_are_compacted_away_while_the_source_is_read_are_right(self, fresh, monkeypatch):
        """As of a table whose rows change every minute, beside a source that takes minutes to read."""
        write_topic(fresh, "nest-logs", backlog(), partitions=3)
        run_once(fresh, STATS)
        admin = fresh.kafka.admin()
        both = [ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)]
        resource = ConfigResource(ResourceType.TOPIC, STATS, incremental_configs=both)
        admin.incremental_alter_configs([resource])[resource].result()

        def compacted_first(*asked):
            rows = folded(fresh, STATS)
            ends = first_and_end_offsets(fresh.kafka, [(STATS, 0)])
            for key, row in rows.items():
                write(fresh, STATS, key, orjson.dumps(row))
            (cut,) = admin.delete_records([TopicPartition(STATS, 0, ends[STATS, 0][1])]).values()
            cut.result()
            return records_between(*asked)

        monkeypatch.setattr("audit.verification.records_between", compacted_first)
        found = verified(fresh, STATS)
        assert (found.verdict, found.rows.equal > 0) == ("right", True), found


class TestRetention:
    def test_what_is_cut_is_not_checkable_and_the_rest_still_is(self, fresh):
        values = [one_camera(f"cam-{number % 40}", START + timedelta(seconds=number * 20)) for number in range(2250)]
        write_topic(fresh, "nest-logs", values, partitions=3)
        # A partition is never more than an hour behind the others here, and the setting says so: the cut can be told from what follows.
        fresh = replace(fresh, partition_skew="1 hour")
        run_once(fresh, STATS, "nest-archive", max_offsets_per_trigger=750)
        admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
        for deleted in admin.delete_records([TopicPartition("nest-logs", number, 300) for number in range(3)]).values():
            deleted.result()
        found = verified(fresh, STATS, "nest-archive")
        assert {outcome.verdict for outcome in found.values()} == {"right"}, found
        cut = "retention has cut nest-logs-{}: the query began at offset 0, the topic now begins at 300"
        assert found[STATS].notes == [cut.format(number) for number in range(3)]
        assert found[STATS].rows.not_checkable > 0 < found[STATS].rows.equal
        assert (found["nest-archive"].rows.not_checkable, found["nest-archive"].rows.equal) == (900, 1350)

        table = folded(fresh, "nest-camera-stats")
        keys = sorted(table, key=lambda key: json.loads(key)["window"]["start"])
        for key, more in ((keys[0], +1), (keys[-1], +1), (keys[-2], -1)):
            write(fresh, "nest-camera-stats", key, orjson.dumps({**table[key], "count": table[key]["count"] + more}))
        write(fresh, "nest-camera-stats", keys[-3], None)
        found = verified(fresh, STATS)
        assert differences(found, "different").keys() == {keys[-1].decode(), keys[-2].decode()}
        assert differences(found, "missing").keys() == {keys[-3].decode()}

    def test_how_far_what_is_cut_may_reach_follows_the_skew_of_the_query_itself(self, fresh):
        times = [START + timedelta(seconds=20 * number) for number in range(2250)]
        values = [one_camera(f"cam-{number // 100}", time) for number, time in enumerate(times)]
        write_topic(fresh, "nest-logs", values, partitions=3, clock=times.__getitem__)
        run_once(fresh, "nest-camera-status", max_offsets_per_trigger=750)
        admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
        for deleted in admin.delete_records([TopicPartition("nest-logs", number, 300) for number in range(3)]).values():
            deleted.result()
        found = verified(fresh, "nest-camera-status")
        assert found.verdict == "right", found
        assert found.rows.not_checkable > 0 < found.rows.equal, found

    def test_a_topic_that_was_created_anew_is_said_to_be(self, fresh):
        write_topic(fresh, "nest-logs", [one_camera("cam-1", START)] * 30, partitions=3)
        run_once(fresh, STATS)
        folder = CheckpointName(STATS, 1, "update").folder(fresh)
        lose_what_came(folder, {"nest-logs": {"0": 99, "1": 99, "2": 99}})
        found = verified(fresh, STATS)
        assert found.verdict == "not checked"
        assert "was recreated" in found.problem


def test_rows_archived_before_a_new_version_of_the_schema_are_right_after_it(fresh_registry):
    for first, schema in ((0, V1), (30, V2)):
        serialize = AvroSerializer(SchemaRegistryClient({"url": fresh_registry.registry_url}), schema)
        values = [
            serialize(change(number, at=1767225600 + number), SerializationContext("wikimedia", MessageField.VALUE))
            for number in range(first, first + 30)
        ]
        write_topic(fresh_registry, "wikimedia", values, partitions=3)
        run_once(fresh_registry, "wikimedia-archive")
    found = verified(fresh_registry, "wikimedia-archive")
    assert (found.verdict, found.rows.equal) == ("right", 60), found


def test_append_mode_holds_the_final_windows_only_and_another_mode_is_told(fresh):
    write_topic(fresh, "nest-logs", backlog(late_duplicates=False), partitions=3)
    run_once(fresh, STATS, mode="append", max_offsets_per_trigger=1000)
    found = verified(fresh, STATS)
    assert found.verdict == "right", found
    assert found.rows.equal == len(folded(fresh, "nest-camera-stats")) > 0
    run_once(fresh, STATS, mode="complete", max_offsets_per_trigger=2000)
    found = verified(fresh, STATS)
    assert found.verdict == "right", found
    assert found.rows.equal > len(folded(fresh, "nest-camera-stats")) - 60
    assert "v1-append" in found.notes[0]


def test_of_a_time_range_windows_are_compared_by_their_times_and_letters_and_archives_by_those_of_records(fresh):
    # Kafka would delete what is older than the retention.
    begun = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=8)
    for hour in range(5):
        for value in (one_camera("cam", begun + timedelta(hours=hour, minutes=30)), b"broken"):
            write(fresh, "nest-logs", None, value, partition=0, timestamp=ms_of(begun + timedelta(hours=hour, minutes=40)))
    names = (STATS, "nest-archive", "nest-dead-letters")
    run_once(fresh, *names, max_offsets_per_trigger=1)
    write(
        fresh,
        STATS,
        f'{{"window":{{"end":"{utc(begun + timedelta(hours=5))}","start":"{utc(begun + timedelta(hours=4))}"}},"zip_code":"x"}}',
        b"{}",
    )
    write(fresh, "dead-letters", orjson.dumps({"offset": 8, "partition": 0, "topic": "nest-logs"}), b"by hand")
    span = TimeRange(begun + timedelta(hours=1), begun + timedelta(hours=3))
    found = {one.query: one for one in verdicts_of(names, fresh, span=span)}
    assert {name: (one.verdict, one.rows.equal) for name, one in found.items()} == {
        STATS: ("right", 2),
        "nest-archive": ("right", 2),
        "nest-dead-letters": ("right", 2),
    }, found
    assert found["nest-archive"].records == 4
    later = TimeRange(begun + timedelta(hours=4))
    assert {one.query: one.verdict for one in verdicts_of(names, fresh, span=later)} == {
        STATS: "wrong",
        "nest-archive": "right",
        "nest-dead-letters": "wrong",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nest-camera-stat",), "no query nest-camera-stat; there are nest-camera-stats"),
        ((STATS,), "nest-camera-stats has not run"),
        (("--from", "yesterday"), "--from is 'yesterday'; expected a date and time"),
        ((), "no query has run"),
    ],
)
def test_a_wrong_word_gets_one_clear_line(settings, tmp_path, arguments, message):
    done = streamgauge("verify", *arguments, settings=settings, STREAMGAUGE_HOME=str(tmp_path))
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
