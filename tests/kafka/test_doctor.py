"""`streamgauge doctor` on a platform that runs: well, and with one thing wrong at a time."""

import subprocess
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType
from running import RETRY_SECONDS, alive, environment, eventually, free_ports, settings_on_free_ports, start_server, streamgauge, succeed

from contract.domains import TOPICS
from dashboard.server import dashboard_command
from infrastructure.registry.client import SchemaRegistry
from streamgauge.operations.doctor import machine, servers
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.listening import listener


class Misadvertised(EmbeddedKafka):
    """A broker that tells clients to connect to a port where nobody listens: a container that advertises its inner address, say."""

    def __init__(self, settings, advertised):
        super().__init__(settings)
        self.advertised = advertised

    def _server_properties(self):
        return {**super()._server_properties(), "advertised.listeners": f"PLAINTEXT://{self.advertised}"}


@pytest.fixture
def misadvertised(tmp_path):
    """Settings of such a broker, and the address that it advertises."""
    chosen = settings_on_free_ports(tmp_path / "home")
    advertised = f"127.0.0.1:{free_ports(1)[0]}"
    own = Misadvertised(chosen, advertised)
    start_server(own)
    yield chosen, advertised
    own.stop()


@pytest.mark.usefixtures("fresh_registry")
def test_a_platform_that_runs_has_no_problem(registry):
    done = succeed("doctor", settings=registry)
    assert f"answers at {registry.bootstrap_servers}, and at the address that it advertises, {registry.bootstrap_servers}" in done.stdout
    assert f"all {len(TOPICS)}, with the expected partitions and settings" in done.stdout
    assert f"answers at {registry.registry_url}: 0 subjects, compatibility BACKWARD" in done.stdout
    assert done.stdout.count("held by the Kafka broker (pid") == 1
    assert done.stdout.count("held by the schema registry (pid") == 1


def test_a_broker_that_advertises_an_address_where_nobody_listens(misadvertised):
    settings, advertised = misadvertised

    def answered():  # a broker that has only just started may not answer yet
        (found,) = servers.broker(settings)
        return found if "a broker answers at" in found.message else None

    found = eventually(answered, "the broker to answer, with its wrong address")
    assert found.level == "problem"
    assert f"{settings.bootstrap_servers}, and tells clients to connect to {advertised} (Connection refused)" in found.message
    assert "advertised.listeners" in found.advice


def test_the_port_of_ones_own_dashboard(settings):
    own = replace(settings, dashboard_port=free_ports(1)[0])
    with subprocess.Popen(dashboard_command(own), env=environment(own), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: listener(own.dashboard_port), "the dashboard to listen")
            assert machine.ports(own)[-1].message == f"held by the dashboard (pid {process.pid})"
        finally:
            process.terminate()


def test_the_platform_of_another_home_is_a_stranger(settings, tmp_path):
    found = machine.ports(replace(settings, home=tmp_path / "other"))
    assert [finding.level for finding in found[:2]] == ["problem", "problem"]
    assert f"taken by the Kafka broker of STREAMGAUGE_HOME={settings.home}" in found[0].message


class TestTopics:
    def test_each_deviation_is_named_with_what_to_do(self, settings, fresh, monkeypatch):
        monkeypatch.setattr(servers, "ANSWER_SECONDS", RETRY_SECONDS)  # a busy broker takes its time
        admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
        admin.delete_topics(["taxi-borough-stats"])["taxi-borough-stats"].result()
        admin.create_partitions([NewPartitions("nest-logs", 5)])["nest-logs"].result()
        config = [
            ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("segment.ms", "1000000", incremental_operation=AlterConfigOpType.SET),
        ]
        resource = ConfigResource(ResourceType.TOPIC, "nest-camera-stats", incremental_configs=config)
        admin.incremental_alter_configs([resource])[resource].result()
        admin.delete_topics(["nyc-taxi"])["nyc-taxi"].result()
        eventually(lambda: "nyc-taxi" not in admin.list_topics().topics, "the topic to be gone")
        of_one_partition = NewTopic("nyc-taxi", 1, config={"cleanup.policy": "delete", "retention.ms": "604800000"})
        admin.create_topics([of_one_partition])["nyc-taxi"].result()
        eventually(lambda: "nyc-taxi" in admin.list_topics().topics, "the topic")

        found = {(finding.level, finding.message): finding.advice for finding in servers.topics(fresh)}
        assert {message: level for level, message in found} == {
            "nest-logs has partitions=5, expected 3": "note",
            "nest-camera-stats has cleanup.policy=delete, expected compact": "problem",
            "nest-camera-stats has segment.ms=1000000, expected 60000": "warning",
            "nyc-taxi has partitions=1, expected 3": "warning",
            f"1 of {len(TOPICS)} are missing: taxi-borough-stats": "warning",
        }
        advice = found["problem", "nest-camera-stats has cleanup.policy=delete, expected compact"]
        assert advice.startswith("rows are lost as it is: kafka-configs.sh --bootstrap-server")
        assert advice.endswith("--alter --entity-type topics --entity-name nest-camera-stats --add-config 'cleanup.policy=compact'")
        assert found["warning", "nyc-taxi has partitions=1, expected 3"].endswith("--alter --topic nyc-taxi --partitions 3")
        done = streamgauge("doctor", settings=settings)
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1].startswith("1 problem, 3 warnings")


def test_a_registry_without_a_rule_is_a_warning(fresh_registry):
    registry = SchemaRegistry(fresh_registry.registry)
    registry.set_compatibility("NONE")
    try:
        (found,) = servers.registry(fresh_registry)
    finally:  # other tests use this registry
        registry.set_compatibility("BACKWARD")
    assert (found.level, found.advice.split(",")[0]) == ("warning", "choose BACKWARD")


def test_a_broker_that_runs_and_does_not_answer(own_broker):
    process = EmbeddedKafka(own_broker).process
    (java,) = alive((process, *process.children(recursive=True)), "java")
    java.suspend()
    try:
        done = streamgauge("doctor", settings=own_broker)
    finally:
        java.resume()
    assert done.returncode == 1
    told = f"the embedded Kafka broker runs (pid {process.pid}) and does not answer at {own_broker.bootstrap_servers}"
    assert told in done.stdout
