"""The platform as a whole: starts the embedded servers, leaves the user's own servers alone, creates the topics."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from contract.create_topics import create_topics
from infrastructure.kafka.errors import KafkaUnavailable, raise_if_access_denied
from infrastructure.process.ports import free_ports
from infrastructure.process.waiting import Say, waiting
from infrastructure.settings import Settings
from infrastructure.storage.temporary import temporary_folder
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.registry import EmbeddedRegistry
from streamgauge.platform.server import EmbeddedServer

NAME_WIDTH = 18
"""The width of the column of service names, which fits the longest name of the demo."""


@dataclass
class Platform:
    """The servers that `up` starts and `down` stops. say: called with a line during long waits, and with warnings."""

    settings: Settings
    say: Say = lambda _: None

    def __post_init__(self) -> None:
        self._was_started: dict[str, bool] = {}
        self._kafka = None if self.settings.kafka_bootstrap_servers else EmbeddedKafka(self.settings)
        self._registry = None if self.settings.schema_registry_url else EmbeddedRegistry(self.settings)

    @property
    def servers(self) -> list[EmbeddedServer]:
        """The embedded servers, without those that the user provides."""
        return [server for server in (self._kafka, self._registry) if server is not None]

    def check_ports(self) -> None:
        """Raises StreamgaugeError when the ports of a server to be started are taken."""
        for server in self.servers:
            server.check_ports()

    def launch(self, *, detached: bool) -> None:
        """Starts the processes of the servers that are not running. detached: they outlive this process."""
        raise_if_access_denied(self.settings.kafka)
        self.check_ports()
        self._was_started = {server.name: server.launch(detached=detached) for server in self.servers}

    def wait_until_ready(self, on_ready: Say, *, with_registry: bool) -> None:
        """Waits for Kafka, creates missing topics, and then waits for the registry, if `with_registry`: its clients can wait themselves.

        on_ready: called with a line per service once it is ready.
        """
        if self._kafka is not None:
            self._kafka.wait_until_ready(self.say)
        on_ready(self._started("Kafka", self._kafka, self.settings.kafka, "KAFKA_BOOTSTRAP_SERVERS"))
        for warning in self._create_topics():
            self.say(f"warning: {warning}")
        if not with_registry:
            return
        if self._registry is not None:
            self._registry.wait_until_ready(self.say)
        on_ready(self._started("Schema registry", self._registry, self.settings.registry, "SCHEMA_REGISTRY_URL"))

    def _started(self, name: str, server: EmbeddedServer | None, address: object, setting: str) -> str:
        status = f"yours, by {setting}" if server is None else "started" if self._was_started[server.name] else "was running"
        return _line(name, f"{address} ({status})")

    def _create_topics(self) -> list[str]:
        for _ in waiting(lambda: f"Kafka at {self.settings.kafka} to create its topics", self.say):
            try:
                return create_topics(
                    self.settings.kafka,
                    say=self.say,
                    replication_factor=self.settings.replication_factor,
                    min_insync_replicas=self.settings.min_insync_replicas,
                )
            except KafkaUnavailable:
                if self._kafka is None:
                    raise
                self._kafka.wait_until_ready(self.say)
        raise AssertionError  # not reached: the wait has no end

    def stop(self) -> list[str]:
        """Stops the embedded servers, whichever process started them. Returns one line per service."""
        return [
            _stopped("Kafka", self._kafka, "KAFKA_BOOTSTRAP_SERVERS"),
            _stopped("Schema registry", self._registry, "SCHEMA_REGISTRY_URL"),
        ]

    def stop_guarded(self) -> None:
        """Stops the servers that this process started with `detached=False`. Servers that were already running continue."""
        for server in self.servers:
            if server.guarded is not None:
                server.stop()


def save_server_classes(settings: Settings) -> None:
    """Saves the classes of the embedded servers, so that they start faster. Each runs once for that, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=temporary_folder(settings.home)) as home:
        kafka_port, registry_port = free_ports(2)
        server_settings = replace(settings, home=Path(home), kafka_port=kafka_port, registry_port=registry_port)
        for server in Platform(server_settings).servers:
            server.save_classes()


def _stopped(name: str, server: EmbeddedServer | None, setting: str) -> str:
    return _line(name, f"left alone: it is yours, by {setting}" if server is None else "stopped" if server.stop() else "not running")


def _line(name: str, text: str) -> str:
    return f"{name:{NAME_WIDTH}} {text}"
