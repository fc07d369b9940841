"""Free options of Spark's Kafka clients, and the replicas of created topics, on a real broker."""

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from plain import START, one_camera, results
from running import eventually, one_line_error, streamgauge, succeed
from transactions import in_a_transaction


def test_an_option_reaches_every_reader_read_uncommitted_counts_what_was_aborted(fresh):
    in_a_transaction(fresh, *(one_camera(device, START) for device in ("cam-a", "cam-b")), abort=True)
    in_a_transaction(fresh, one_camera("cam-c", START))
    options = {"STREAMGAUGE_KAFKA_OPTIONS": "isolation.level=read_uncommitted"}
    for command in (("run", "nest-camera-stats", "--once"), ("verify", "nest-camera-stats")):
        succeed(*command, settings=fresh, **options)
    assert sum(results(fresh).values()) == 3


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("max.pol.records=1", "max.pol.records, which Kafka's consumers and producers do not have"),
        ("fetch.max.wait.ms=soon", "Invalid value soon for configuration fetch.max.wait.ms"),
        ("compression.type=rar", "compression.type"),
    ],
)
def test_an_option_that_kafka_does_not_take_is_refused_before_a_query_starts(fresh, option, told):
    done = streamgauge("run", "nest-camera-stats", "--once", settings=fresh, STREAMGAUGE_KAFKA_OPTIONS=option)
    assert told in one_line_error(done)


def test_created_topics_have_the_replicas_that_were_asked_for(fresh):
    def delete_alerts():
        admin.delete_topics(["alerts"])["alerts"].result()
        eventually(lambda: "alerts" not in fresh.kafka.admin().list_topics().topics, "the topic to be gone")

    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    yours = {"KAFKA_BOOTSTRAP_SERVERS": fresh.bootstrap_servers, "SCHEMA_REGISTRY_URL": "http://127.0.0.1:9"}
    delete_alerts()
    done = streamgauge("up", settings=fresh, STREAMGAUGE_REPLICATION_FACTOR="2", **yours)
    assert "alerts" in one_line_error(done)
    assert "replication factor" in done.stderr.lower(), "one broker cannot have two replicas"

    succeed("up", settings=fresh, STREAMGAUGE_REPLICATION_FACTOR="1", STREAMGAUGE_MIN_INSYNC_REPLICAS="2", **yours)
    resource = ConfigResource(ResourceType.TOPIC, "alerts")
    assert admin.describe_configs([resource])[resource].result()["min.insync.replicas"].value == "2"
    delete_alerts()  # nothing could be written to it
