"""`up` and `down`: idempotent, and after every kind of end."""

import pytest
from plain import read_topic, write_topic
from running import eventually, settings_on_free_ports, streamgauge

from streamgauge.platform.kafka import EmbeddedKafka


@pytest.fixture
def idle(tmp_path):
    """Settings of a platform that does not run; what a test starts with them is stopped in the end."""
    chosen = settings_on_free_ports(tmp_path / "idle")
    yield chosen
    streamgauge("down", settings=chosen)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Settings of a platform that `up` has started, and what `up` printed. The tests of this file share it; the last one stops it."""
    chosen = settings_on_free_ports(tmp_path_factory.mktemp("running"))
    up = streamgauge("up", settings=chosen)
    yield chosen, up
    streamgauge("down", settings=chosen)


def test_up_twice(running):
    settings, first = running
    second = streamgauge("up", settings=settings)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert f"127.0.0.1:{settings.kafka_port} (started)" in first.stdout
    assert f"127.0.0.1:{settings.kafka_port} (was running)" in second.stdout


def test_a_broker_that_was_killed_starts_again_with_its_data(running):
    settings, _ = running
    write_topic(settings, "nest-logs", [b"before the kill"])
    broker = EmbeddedKafka(settings).process
    broker.kill()
    eventually(lambda: EmbeddedKafka(settings).process is None, "the broker to be gone")
    up = streamgauge("up", settings=settings)
    assert "(started)" in up.stdout, up.stderr
    assert [message.value() for message in read_topic(settings, "nest-logs")] == [b"before the kill"]


def test_down_twice(running):
    settings, _ = running
    assert "stopped" in streamgauge("down", settings=settings).stdout
    again = streamgauge("down", settings=settings)
    assert again.returncode == 0
    assert "not running" in again.stdout


def of_ones_own(fresh):
    return {"KAFKA_BOOTSTRAP_SERVERS": fresh.bootstrap_servers, "SCHEMA_REGISTRY_URL": "http://127.0.0.1:9"}


def test_a_kafka_of_ones_own_is_used_and_left_alone(idle, fresh):
    up = streamgauge("up", settings=idle, **of_ones_own(fresh))
    assert f"{fresh.bootstrap_servers} (yours" in up.stdout
    assert not (idle.home / "kafka").exists()
    down = streamgauge("down", settings=idle, **of_ones_own(fresh))
    assert "left alone: it is yours, by KAFKA_BOOTSTRAP_SERVERS" in " ".join(down.stdout.split())


def test_an_existing_topic_with_other_settings_is_named(idle, fresh):
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    admin.delete_topics(["nest-camera-stats"])["nest-camera-stats"].result()
    eventually(lambda: "nest-camera-stats" not in admin.list_topics().topics, "the topic to be gone")
    admin.create_topics([NewTopic("nest-camera-stats", num_partitions=2)])["nest-camera-stats"].result()
    eventually(lambda: "nest-camera-stats" in admin.list_topics().topics, "the topic")
    up = streamgauge("up", settings=idle, **of_ones_own(fresh))
    assert up.returncode == 0
    assert "warning: topic nest-camera-stats has partitions=2, expected partitions=1" in up.stderr
    assert "has cleanup.policy=delete, expected cleanup.policy=compact" in up.stderr
