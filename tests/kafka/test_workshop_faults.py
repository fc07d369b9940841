"""The faults of `streamgauge break`: each breaks what it says, shows where it says, and is repaired when `diagnose` says so."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from messages import absent
from plain import START, dropped, folded, one_camera, read_topic, write_counts, write_topic
from running import environment, eventually, one_line_error, running_queries, streamgauge, succeed, verify, with_kafka
from topic_reset import empty_topics

from contract.create_topics import create_topics, deviations
from contract.domains import TOPICS
from contract.domains.nest import NEST_CAMERA_STATS
from infrastructure.kafka.writing import write_rows
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.workshop import breaking
from streamgauge.workshop.breakage import raw_rows
from streamgauge.workshop.faults import FAULTS

QUERIES = ("nest-camera-stats", "nest-dead-letters")
CAMERAS = 20


def play(settings, fault):
    done = succeed("break", fault, settings=settings)
    assert absent(done.stdout, f"cause: {FAULTS[fault].cause}", f"workshop diagnose {fault}") == []


def diagnose(settings, *arguments):
    return streamgauge("workshop", "diagnose", *arguments, settings=settings)


def undo(settings):
    succeed("break", "--undo", settings=settings)
    assert breaking.played(settings) is None


def once(settings, *queries, **variables):
    return streamgauge("run", *queries, "--once", settings=settings, STREAMGAUGE_RESTART_LIMIT="1", **variables)


def rows_found(settings):
    found = verify("nest-camera-stats", settings=settings)["nest-camera-stats"]
    assert found["problem"] is None
    return found["rows"]


@pytest.fixture
def fresh(fresh, settings):
    return with_kafka(fresh, EmbeddedKafka(settings).process)


@pytest.fixture(scope="module")
def counted_once(settings, tmp_path_factory):
    """A home in which each camera's sighting has an hour of its own, and all are counted."""
    empty_topics(settings.kafka)
    settings = with_kafka(replace(settings, home=tmp_path_factory.mktemp("home")), EmbeddedKafka(settings).process)
    hours = [START.replace(hour=number) for number in range(CAMERAS)]
    write_topic(settings, "nest-logs", [one_camera("cam-1", hour) for hour in hours], key=b"home")
    succeed("run", *QUERIES, "--once", settings=settings)
    return settings, {message.key(): message.value() for message in read_topic(settings, "nest-camera-stats")}


@pytest.fixture
def counted(counted_once):
    """The same home, with the rows as they were counted, and nothing broken: the faults before have changed some."""
    settings, rows = counted_once
    write_rows(settings.kafka, "nest-camera-stats", rows)
    yield settings
    breaking.forget(settings)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("foreign-records", "not JSON"), ("wrong-clock", "start_time is in the future"), ("changed-type", "another type")],
)
def test_records_that_cannot_be_used_become_dead_letters_and_no_count_is_wrong(counted, fault, reason):
    before = len(read_topic(counted, "dead-letters"))
    play(counted, fault)
    succeed("run", *QUERIES, "--once", settings=counted)
    letters = read_topic(counted, "dead-letters")[before:]
    assert len(letters) == 600
    assert reason in dict(letters[0].headers())["reason"].decode()
    assert rows_found(counted)["equal"] == CAMERAS


def test_another_name_is_refused_with_what_it_would_show(counted):
    play(counted, "deleted-rows")
    told = diagnose(counted, "wrong-clock")
    assert told.returncode == 1
    assert told.stdout == f"no. With wrong-clock, this would show: {FAULTS['wrong-clock'].signs}\n"
    assert "is not repaired yet" in one_line_error(streamgauge("workshop", "break", settings=counted))
    assert absent(diagnose(counted, "--give-up").stdout, "A third of the rows", "signs: ", "repair: ") == []
    assert all(fault in diagnose(counted).stdout for fault in FAULTS)


def test_a_drawn_fault_is_not_named(counted):
    seed = next(seed for seed in range(100) if breaking.drawn(seed) == "foreign-records")
    told = succeed("workshop", "break", "--seed", str(seed), settings=counted).stdout
    assert absent(told, "something is wrong now", ", ".join(FAULTS)) == []
    assert FAULTS["foreign-records"].cause not in told
    assert diagnose(counted, "foreign-records").stdout.startswith("right. Another program has sent")


def test_a_seed_draws_the_same_fault():
    assert len({breaking.drawn(7) for _ in range(10)}) == 1
    assert {breaking.drawn(seed) for seed in range(100)} == set(FAULTS)


@pytest.mark.parametrize(
    ("fault", "kind", "rows"),
    [("deleted-rows", "missing", 7), ("changed-rows", "different", 4), ("extra-rows", "extra", 4), ("unreadable-rows", "different", 4)],
)
def test_verify_counts_the_wrong_rows_until_they_are_undone(counted, fault, kind, rows):
    before = raw_rows(counted, NEST_CAMERA_STATS)
    play(counted, fault)
    assert rows_found(counted)[kind] == rows
    undo(counted)
    assert raw_rows(counted, NEST_CAMERA_STATS) == before
    assert rows_found(counted)["equal"] == CAMERAS


def test_sightings_of_a_month_ago_are_late_and_no_count_is_wrong(counted):
    before = dropped(counted, "nest-camera-stats")
    play(counted, "late-records")
    succeed("run", *QUERIES, "--once", settings=counted)
    assert dropped(counted, "nest-camera-stats") == before + 600
    assert rows_found(counted)["equal"] == CAMERAS


def test_records_that_are_sent_again_count_once(counted):
    before = read_topic(counted, "nest-logs")
    play(counted, "repeated-records")
    assert len(read_topic(counted, "nest-logs")) >= len(before) + CAMERAS
    succeed("run", *QUERIES, "--once", settings=counted)
    assert rows_found(counted)["equal"] == CAMERAS


def test_a_burst_goes_to_one_partition_and_none_of_its_documents_is_a_dead_letter(counted):
    letters, before = len(read_topic(counted, "dead-letters")), Counter(message.partition() for message in read_topic(counted, "nest-logs"))
    play(counted, "burst")
    after = Counter(message.partition() for message in read_topic(counted, "nest-logs"))
    assert list((after - before).values()) == [50_000]
    succeed("run", *QUERIES, "--once", settings=counted)
    assert len(read_topic(counted, "dead-letters")) == letters
    assert rows_found(counted)["equal"] == CAMERAS


def test_a_fault_is_over_when_the_query_runs_and_the_audit_finds_its_rows_right(counted):
    play(counted, "changed-rows")
    told = diagnose(counted, "changed-rows")
    assert told.returncode == 1
    assert absent(told.stdout, "right. Another program", "query nest-camera-stats is stopped", "4 rows are wrong") == []
    succeed("reset", "nest-camera-stats", "--yes", settings=counted)
    with running_queries("nest-camera-stats", settings=counted):
        eventually(lambda: diagnose(counted, "changed-rows").returncode == 0, "the fault to be repaired")
    assert "nothing is broken" in one_line_error(diagnose(counted, "changed-rows"))


def test_the_query_with_a_damaged_file_is_given_up_and_names_its_checkpoint(counted):
    play(counted, "damaged-checkpoint")
    write_topic(counted, "nest-logs", [one_camera("cam-2", START)])
    done = once(counted, *QUERIES)
    assert absent(done.stderr, "nest-camera-stats given up", "damaged", str(counted.checkpoints), "reset") == []
    undo(counted)
    assert once(counted, *QUERIES).returncode == 0
    assert verify("nest-camera-stats", settings=counted)["nest-camera-stats"]["verdict"] == "right"


def test_what_the_query_has_written_since_is_not_undone(fresh):
    write_counts(fresh, {0: 1, 1: 2})
    play(fresh, "changed-rows")
    write_counts(fresh, {0: 3})
    undo(fresh)
    assert [row["count"] for row in folded(fresh, "nest-camera-stats").values()] == [3, 2]


def test_a_producer_that_stands_still_is_repaired_when_it_goes_on(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "produce", "nest", "--rate", "10"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.DEVNULL) as producer:
        try:
            eventually(lambda: read_topic(fresh, "nest-logs"), "the producer's first document")
            play(fresh, "frozen-producer")
            eventually(lambda: psutil.Process(producer.pid).status() == psutil.STATUS_STOPPED, "the producer to stand still")
            told = diagnose(fresh, "frozen-producer").stdout
            assert absent(told, "right. The Nest producer is stopped", f"process {producer.pid} is still") == []
            psutil.Process(producer.pid).resume()
            assert diagnose(fresh, "frozen-producer").stdout.endswith("It is not repaired yet:\n  no query has run\n")
        finally:
            producer.kill()


def test_a_deleted_topic_the_query_names_the_topic_and_up_creates_it(fresh):
    try:
        play(fresh, "deleted-topic")
        admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
        eventually(lambda: "nest-camera-status" not in admin.list_topics().topics, "the topic to be gone")
        done = streamgauge("run", "nest-camera-status", "--once", settings=fresh, STREAMGAUGE_RESTART_LIMIT="0")
        assert "no topic nest-camera-status" in done.stderr, done.stderr
    finally:
        create_topics(fresh.kafka)


def test_a_topic_that_was_deleted_gets_its_rows_back(fresh):
    write_rows(fresh.kafka, "nest-camera-status", {b'{"device_id":"a"}': b'{"device_id":"a"}', b'{"device_id":"b"}': b'{"device_id":"b"}'})
    before = folded(fresh, "nest-camera-status")
    play(fresh, "deleted-topic")
    undo(fresh)
    assert folded(fresh, "nest-camera-status") == before


def test_a_topic_that_refuses_its_rows_stops_its_query_which_goes_on_from_there(fresh, monkeypatch):
    monkeypatch.setattr("pipeline.running.query_life.ONCE_SECONDS", 1)
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)])
    play(fresh, "refused-rows")
    told = "topic nest-camera-stats takes batches of at most 100 bytes (max.message.bytes), and the query sends up to 16,384"
    assert absent(once(fresh, "nest-camera-stats").stderr, "nest-camera-stats waits for its result topic", f"given up: {told}") == []
    assert "topic nest-camera-stats has max.message.bytes=100" in diagnose(fresh, "refused-rows").stdout
    undo(fresh)
    assert once(fresh, "nest-camera-stats").returncode == 0
    assert rows_found(fresh)["equal"] == 1


def test_a_topic_that_refuses_its_records_ends_its_producer(fresh):
    produce = ("produce", "nest", "--limit", "20", "--unpaced")
    play(fresh, "refused-records")
    assert absent(one_line_error(streamgauge(*produce, settings=fresh)), "nest-logs", "max.message.bytes") == []
    assert "topic nest-logs has max.message.bytes=100" in diagnose(fresh, "refused-records").stdout
    undo(fresh)
    succeed(*produce, settings=fresh)
    assert len(read_topic(fresh, "nest-logs")) == 20
    partitions = {topic.name: topic.partitions for topic in TOPICS}
    assert deviations(fresh.kafka.admin(), TOPICS, partitions) == []


def test_an_archive_without_a_batch_which_its_query_would_begin_anew_is_left_in_its_place(fresh):
    (fresh.lake / "nest" / "cameras" / "_spark_metadata").mkdir(parents=True)
    told = one_line_error(streamgauge("break", "lost-archive", settings=fresh))
    assert "lake/nest/cameras has no batch on this machine yet" in told
    assert breaking.played(fresh) is None


def test_an_archive_that_is_gone_stops_its_query_until_it_is_back(fresh):
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)])
    assert once(fresh, "nest-archive").returncode == 0
    play(fresh, "lost-archive")
    write_topic(fresh, "nest-logs", [one_camera("cam-2", START)])
    assert absent(once(fresh, "nest-archive").stderr, "nest-archive given up", "lake/nest/cameras has no batch") == []
    undo(fresh)
    assert once(fresh, "nest-archive").returncode == 0
    found = verify("nest-archive", settings=fresh)["nest-archive"]
    assert (found["verdict"], found["rows"]["equal"]) == ("right", 2)


def test_records_of_an_unknown_schema_become_dead_letters(fresh_registry):
    play(fresh_registry, "unknown-schema")
    succeed("run", "wikimedia-dead-letters", "--once", settings=fresh_registry)
    letters = read_topic(fresh_registry, "dead-letters")
    assert len(letters) == 600
    assert str(0x7FFFFFF0) in dict(letters[0].headers())["reason"].decode()


def test_an_audit_that_stands_still_goes_on(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "audit"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.DEVNULL) as audit:
        try:
            process = psutil.Process(audit.pid)
            eventually((fresh.home / "audit" / "audit.duckdb").exists, "the audit to begin")
            play(fresh, "frozen-audit")
            eventually(lambda: process.status() == psutil.STATUS_STOPPED, "the audit to stand still")
            undo(fresh)
            eventually(lambda: process.status() != psutil.STATUS_STOPPED, "the audit to go on")
        finally:
            audit.kill()


def test_a_registry_that_does_not_answer_is_seen_by_doctor(registry):
    [process] = FAULTS["frozen-registry"].action.find(registry)
    try:
        play(registry, "frozen-registry")
        assert f"process {process.pid} is still" in diagnose(registry, "frozen-registry").stdout
        assert registry.registry_url in streamgauge("doctor", settings=registry).stdout
        undo(registry)
        assert FAULTS["frozen-registry"].action.left(registry) is None
    finally:
        process.resume()
        breaking.forget(registry)


def test_without_a_name_each_fault_is_listed_with_what_shows_and_repairs_it(fresh):
    listed = succeed("break", settings=fresh).stdout
    assert absent(listed, *(text for name, fault in FAULTS.items() for text in (name, fault.cause, fault.signs, fault.repair))) == []
    assert "nothing is broken" in one_line_error(diagnose(fresh))


def test_a_kafka_of_the_user_is_never_broken(fresh):
    own = replace(fresh, kafka_bootstrap_servers=fresh.bootstrap_servers)
    assert "only the demo's own Kafka" in one_line_error(streamgauge("break", "foreign-records", settings=own))
    assert read_topic(fresh, "nest-logs") == []


def test_the_demo_of_another_home_is_not_broken(fresh, tmp_path):
    other = replace(fresh, home=tmp_path / "other")
    assert f"no demo runs with STREAMGAUGE_HOME={other.home};" in one_line_error(streamgauge("break", "foreign-records", settings=other))
    assert read_topic(fresh, "nest-logs") == []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("frozen-producer", "no `streamgauge produce nest` runs"),
        ("frozen-pipeline", "no pipeline runs"),
        ("changed-rows", "has no rows yet"),
        ("damaged-checkpoint", "no checkpoint with a batch on this machine yet"),
        ("hot-producer", "no fault hot-producer"),
    ],
)
def test_a_fault_that_cannot_be_played_says_why(fresh, fault, told):
    assert told in one_line_error(streamgauge("break", fault, settings=fresh))
    assert "nothing is broken" in one_line_error(diagnose(fresh))


def test_kafka_that_does_not_answer_is_repaired_when_it_does(own_broker):
    [broker] = FAULTS["frozen-kafka"].action.find(own_broker)
    try:
        play(own_broker, "frozen-kafka")
        assert f"process {broker.pid} is still" in diagnose(own_broker, "frozen-kafka").stdout
    finally:
        broker.resume()
    assert "still" not in diagnose(own_broker, "frozen-kafka").stdout
