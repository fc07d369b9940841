"""`streamgauge produce nest` on a real broker: what arrives, what is refused, and brokers that are not there."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime

import orjson
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from plain import read_topic
from running import RETRY_SECONDS, environment, eventually, kafka_client_threads, running_broker, start_server, streamgauge, succeed

from contract.domains.nest import NEST_LOGS
from contract.topics import MAX_RECORD_BYTES
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.process.ports import free_ports
from producers.delivery.sending import Delivery
from producers.nest.simulation import Simulation, simulate
from streamgauge.platform.kafka import EmbeddedKafka

START = "2026-01-01T00:00:00Z"
SIMULATED = ("produce", "nest", "--json", "--unpaced", "--start", START)


def summary_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def record_count(settings):
    consumer = Consumer({"bootstrap.servers": settings.bootstrap_servers, "group.id": "unused", "log_level": 0})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(NEST_LOGS.name, number), 10) for number in range(NEST_LOGS.partitions)]
    except KafkaException:  # the topic was created just now, and has no leader yet
        return 0
    finally:
        consumer.close()
    return sum(end for _, end in ends)


def sightings_of(values):
    """(device_id, start_time) of the people in `values`, told without the code under test."""
    return {
        (camera["device_id"], datetime.fromisoformat(camera["last_event"]["start_time"]))
        for value in values
        for camera in orjson.loads(value)["devices"].get("cameras", {}).values()
        if camera.get("last_event", {}).get("has_person")
    }


def is_document(value):
    try:
        return "devices" in orjson.loads(value)
    except ValueError:
        return False


def test_what_arrives_is_what_was_simulated_in_the_order_of_each_home(fresh):
    summary_of(streamgauge(*SIMULATED, "--limit", "3000", "--seed", "3", settings=fresh))
    expected = list(simulate(Simulation(datetime(2026, 1, 1, tzinfo=UTC), seed=3, limit=3000)))
    by_key, clock_of = {}, {event.value: event.event_time_ms for event in expected}
    for message in read_topic(fresh, NEST_LOGS.name):
        assert message.headers() == [("clock_ms", b"%d" % clock_of[message.value()])]
        by_key.setdefault(message.key(), []).append(message.value())
    assert by_key == {key: [event.value for event in expected if event.key == key] for key in {event.key for event in expected}}


def test_the_summary_tells_what_is_in_the_topic(fresh):
    faults = ("--late", "0.05", "--too-late", "0.02", "--duplicates", "0.05", "--corrupt", "0.03")
    summary = summary_of(streamgauge(*SIMULATED, "--limit", "6000", *faults, settings=fresh))
    messages = read_topic(fresh, NEST_LOGS.name)
    usable = Counter(message.value() for message in messages if is_document(message.value()))
    assert summary["events"] == len(messages)
    assert summary["distinct_events"] == len(usable) == 6000
    assert summary["duplicates"] == usable.total() - len(usable) > 200
    assert summary["corrupt"] == len(messages) - usable.total() > 100
    assert summary["people_seen"] == len(sightings_of(usable)) > 50
    assert min(summary["late"], summary["too_late"]) > 50
    assert summary["undelivered"] == 0


def test_no_kafka_client_outlives_a_producer(fresh):
    before = kafka_client_threads()
    succeed("produce", "nest", "--limit", "10", "--unpaced", settings=fresh)
    eventually(lambda: kafka_client_threads() <= before, "the threads of the clients to end")


def test_homes_are_spread_over_all_partitions_as_java_would_spread_them(fresh):
    delivery = Delivery(fresh.kafka, print)
    # murmur2 of Java's clients: Utils.toPositive(Utils.murmur2(key)) % 3
    expected = {b"structure-1": java_partition(b"structure-1"), b"a": java_partition(b"a"), b"home 77": java_partition(b"home 77")}
    marker = os.urandom(8)
    for key in expected:
        delivery.send(NEST_LOGS.name, key, marker)
    assert delivery.flush(30) == 0
    found = {message.key(): message.partition() for message in read_topic(fresh, NEST_LOGS.name) if message.value() == marker}
    assert found == expected


def java_partition(key, partitions=3):
    """Kafka's Java DefaultPartitioner, written after org.apache.kafka.common.utils.Utils.murmur2."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(key)) & mask
    for at in range(0, len(key) // 4 * 4, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if rest := key[len(key) // 4 * 4 :]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions


def test_a_recording_is_replayed_byte_for_byte_with_its_bad_lines(fresh, tmp_path):
    lines = [b'{"devices": {"cameras": {}}}', b"rubbish", b"\xff\xfe", b'{ "devices" : { } }']
    recording = tmp_path / "recording.jsonl"
    recording.write_bytes(b"\n".join(lines))
    summary = summary_of(streamgauge("produce", "nest", "--json", "--file", str(recording), settings=fresh))
    messages = read_topic(fresh, NEST_LOGS.name)
    assert sorted(message.value() for message in messages) == sorted(lines)
    assert {message.headers() for message in messages} == {None}, "what was recorded has times of the past, and no clock of its own"
    assert (summary["events"], summary["distinct_events"], summary["corrupt"]) == (4, 2, 2)


def test_a_record_that_the_broker_refuses_is_named(fresh):
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers, "log_level": 0})
    smaller = ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, NEST_LOGS.name, incremental_configs=[smaller])
    admin.incremental_alter_configs([resource])[resource].result()
    done = streamgauge(*SIMULATED, "--limit", "50", settings=fresh)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "refused a record for topic nest-logs, key b'structure-" in done.stderr
    assert "max.message.bytes" in done.stderr
    assert done.stdout == ""


def test_a_record_that_no_broker_would_take_is_refused_before_it_is_sent(settings):
    delivery = Delivery(settings.kafka, print)
    with pytest.raises(StreamgaugeError, match=f"key b'k', {MAX_RECORD_BYTES + 1} bytes"):
        delivery.send(NEST_LOGS.name, b"k", b"x" * (MAX_RECORD_BYTES + 1))


def test_a_document_of_5_mb_passes(fresh):
    delivery, value = Delivery(fresh.kafka, print), os.urandom(5_000_000)
    delivery.send(NEST_LOGS.name, b"k", value)
    assert delivery.flush(30) == 0
    digests = {hashlib.sha256(message.value()).digest() for message in read_topic(fresh, NEST_LOGS.name)}
    assert hashlib.sha256(value).digest() in digests


def test_a_missing_topic_is_named(settings):
    with pytest.raises(StreamgaugeError, match="has no topic no-such-topic; correct the name, or create it"):
        Delivery(settings.kafka, print).check("no-such-topic")


def test_a_kafka_that_stays_away_is_one_line_in_the_end():
    nowhere, notices = f"127.0.0.1:{free_ports(1)[0]}", []
    with pytest.raises(StreamgaugeError, match=f"^no Kafka answers at {nowhere}[^\n]*$"):
        Delivery(KafkaCluster(nowhere), notices.append, patience_seconds=1).check(NEST_LOGS.name)
    assert [notice for notice in notices if "waiting for it" in notice] == notices
    assert len(notices) == 1, "the wait is said once"


@contextmanager
def running(settings, *arguments):
    command = [sys.executable, "-m", "streamgauge.cli", "produce", "nest", "--json", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(settings))
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def kill(broker):
    broker.process.kill()
    eventually(lambda: broker.process is None, "the broker to be gone")


def test_ctrl_c_ends_an_endless_run_with_everything_delivered_and_a_summary(fresh):
    with running(fresh, "--rate", "500", "--late", "0.2", "--duplicates", "0.2") as process:
        eventually(lambda: record_count(fresh) > 200, "records to arrive")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["events"] == record_count(fresh)
    assert json.loads(stdout)["duplicates"] > 0


def test_a_kafka_that_comes_later_is_waited_for(second_broker):
    EmbeddedKafka(second_broker).stop()
    with running(second_broker, "--limit", "5", "--continue") as process:
        assert process.stderr.readline().startswith(f"no Kafka answers at {second_broker.bootstrap_servers}")
        running_broker(second_broker)
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["undelivered"] == 0


def test_a_broker_that_is_killed_and_comes_back_gets_every_record_once(own_broker):
    with running(own_broker, "--rate", "1000", "--limit", "3000", "--start", START) as process:
        eventually(lambda: record_count(own_broker) > 500, "records to arrive")
        broker = EmbeddedKafka(own_broker)
        kill(broker)
        assert "does not answer; waiting for it" in process.stderr.readline()
        start_server(broker)
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert "is back after" in stderr
    arrived = Counter(message.value() for message in read_topic(own_broker, NEST_LOGS.name))
    assert (json.loads(stdout)["events"], len(arrived), arrived.total()) == (3000, 3000, 3000)


def test_a_broker_that_stays_away_is_told_in_the_end_and_a_signal_ends_the_wait(own_broker):
    notices = []
    delivery = Delivery(own_broker.kafka, notices.append, patience_seconds=3)
    delivery.send(NEST_LOGS.name, b"k", b"v")
    assert delivery.flush(RETRY_SECONDS) == 0
    with running(own_broker, "--rate", "500") as process:
        eventually(lambda: record_count(own_broker) > 200, "records to arrive")
        kill(EmbeddedKafka(own_broker))
        delivery.send(NEST_LOGS.name, b"k", b"v")
        with pytest.raises(StreamgaugeError, match="did not answer for more than 3 s, and 1 records were not delivered"):
            delivery.flush(RETRY_SECONDS)
        assert len(notices) == 1

        assert "does not answer; waiting for it" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate()
    assert process.returncode == 2
    assert f"{json.loads(stdout)['undelivered']} of {json.loads(stdout)['events']} records were not acknowledged" in stderr
