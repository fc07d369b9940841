"""The embedded Kafka: one Apache Kafka broker in KRaft mode, on loopback, configured for a small machine."""

import base64
import contextlib
import uuid
from collections.abc import Mapping
from pathlib import Path

import javaproperties
from confluent_kafka import KafkaException

from contract.topics import MAX_RECORD_BYTES
from infrastructure.java import jars
from infrastructure.java.runtime import log_options
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.process.ports import free_ports
from infrastructure.process.waiting import REQUEST_SECONDS
from infrastructure.settings import Settings
from infrastructure.storage.paths import write_whole
from streamgauge.platform.listening import HOST
from streamgauge.platform.processes import PidFile
from streamgauge.platform.server import EmbeddedServer, Launch

_LOGGING = Path(__file__).with_name("kafka-log4j2.properties")
NODE_ID = 1
PARTITION_BYTES = 2**30
"""How much of a partition is kept at least; of a topic that is not compacted, older segments are deleted."""
SEGMENT_BYTES = 64 * 2**20
# Without the second compiler a start takes half of the CPU time, and two million records take three quarters.
_JAVA_FLAGS = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class EmbeddedKafka(EmbeddedServer):
    """The broker of one STREAMGAUGE_HOME."""

    name = "Kafka broker"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.folder = settings.home.absolute() / "kafka"
        self.log = settings.logs.absolute() / "kafka.log"
        self.pid_file = PidFile(self.folder / "broker.pid")
        self.ports = (settings.kafka_port,)
        self.port_advice = "choose another port with STREAMGAUGE_KAFKA_PORT, or use that Kafka with KAFKA_BOOTSTRAP_SERVERS"
        self.address = f"{HOST}:{settings.kafka_port}"

    def answers(self) -> bool:
        with contextlib.suppress(KafkaException):
            # Until it lists itself, its partitions have no leaders, or it does not know of them.
            return bool(KafkaCluster(self.address).admin().list_topics(timeout=REQUEST_SECONDS).brokers)
        return False

    @property
    def class_path(self) -> list[Path]:
        """The jars of the broker, whether they are in the cache or not."""
        return jars.paths("kafka", self.settings)

    def _prepare(self) -> Launch:
        jars.fetch("kafka", self.settings)
        properties = self.folder / "server.properties"
        _write_properties(properties, self._server_properties())
        node = self.folder / "data" / "meta.properties"
        if not node.exists():  # as `kafka-storage format` writes it; the broker creates the rest at its first start
            ids = {name: base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for name in ("cluster.id", "directory.id")}
            _write_properties(node, {"version": 1, "node.id": NODE_ID, **ids})
        command = [
            str(self.java),
            *_JAVA_FLAGS,
            self.temporary_files,
            *log_options(_LOGGING, self.log),
            "-cp",
            jars.class_path(self.class_path),
            "kafka.Kafka",
            str(properties),
        ]
        return Launch(command, {}, self.log.with_name("kafka.out"))

    def _server_properties(self) -> dict[str, str | int]:
        port = self.settings.kafka_port
        others = port, self.settings.registry_port, self.settings.dashboard_port  # which may not be taken yet
        (controller,) = free_ports(1, but=others)  # the broker alone connects to it
        return {
            "process.roles": "broker,controller",
            "node.id": NODE_ID,
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            # Relative to the folder that the broker runs in: Kafka would take an absolute path with a comma for two.
            "log.dirs": "data",
            "auto.create.topics.enable": "false",
            "message.max.bytes": MAX_RECORD_BYTES,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.cleaner.backoff.ms": 5000,
            "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
            "log.retention.check.interval.ms": 60_000,
            "log.retention.bytes": PARTITION_BYTES,
            "log.segment.bytes": SEGMENT_BYTES,
        }


def _write_properties(file: Path, properties: Mapping[str, str | int]) -> None:
    # Java reads the file as Latin-1: other characters are escaped.
    write_whole(file, javaproperties.dumps({name: str(value) for name, value in properties.items()}, timestamp=False))
