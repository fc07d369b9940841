"""The platform as a whole: starts what is embedded, leaves alone what the user brought, creates the topics."""

import threading
from dataclasses import dataclass, field

from streamgauge.errors import StreamgaugeError
from streamgauge.kafka_errors import raise_if_kept_out
from streamgauge.kafka_topics import create_topics
from streamgauge.local import jars, registry
from streamgauge.local.kafka import EmbeddedKafka
from streamgauge.local.registry import EmbeddedRegistry
from streamgauge.local.server import EmbeddedServer
from streamgauge.settings import Settings

NAME_WIDTH = 18
"""The column of names in front of what is said of a service, as wide as the longest of the demo's."""


@dataclass
class Platform:
    """What `up` starts and `down` stops. `with_registry` False: the broker alone, as if Avro did not exist."""

    settings: Settings
    warnings: list[str] = field(default_factory=list)
    with_registry: bool = True

    def __post_init__(self) -> None:
        self._kafka = None if self.settings.kafka_bootstrap_servers else EmbeddedKafka(self.settings)
        self._registry = EmbeddedRegistry(self.settings) if self.with_registry and not self.settings.schema_registry_url else None
        self._registry_start: _Start | None = None

    def start(self, *, detached: bool) -> list[str]:
        """Starts what is not running, creates missing topics; returns the addresses, a line a service.

        `detached`: it stays when this process ends, and all of it is waited for. Otherwise only Kafka is: the registry comes up beside it,
        `registry_problem` says when it does not, and who needs it waits for it. Warnings about what the user brought are kept in `warnings`.
        """
        raise_if_kept_out(self.settings.kafka)
        servers = [server for server in (self._kafka, self._registry) if server is not None]
        for server in servers:
            server.check_ports()
        if self._registry is not None and detached:
            jars.unpacked("registry", self.settings)  # here, where its progress bar is the only one
        if self._registry is not None:
            self._registry_start = _Start(self._registry, detached=detached)
        lines = [self._start_kafka(detached=detached)]
        self.warnings = create_topics(self.settings.kafka)
        if self.with_registry:
            lines.append(self._registry_line(detached=detached))
        return lines

    @property
    def registry_problem(self) -> StreamgaugeError | None:
        """Why the registry that was started beside Kafka did not come up; None while it may, or has."""
        return self._registry_start.problem if self._registry_start is not None else None

    def stop(self) -> list[str]:
        """Stops what was started here, by this process or by another; returns a line a service."""
        lines = [_stopped("Kafka", self._kafka, "KAFKA_BOOTSTRAP_SERVERS")]
        if self.with_registry:
            lines.append(_stopped("Schema registry", self._registry, "SCHEMA_REGISTRY_URL"))
        return lines

    def stop_guarded(self) -> None:
        """Stops what this process started with `detached=False`; what ran before stays."""
        guarded = [server for server in (self._kafka, self._registry) if server is not None and server.guarded is not None]
        for server in guarded:
            server.ask_to_stop()
        for server in guarded:
            server.stop()

    def _start_kafka(self, *, detached: bool) -> str:
        address = self.settings.kafka
        if self._kafka is None:
            return _line("Kafka", f"{address} (yours, by KAFKA_BOOTSTRAP_SERVERS)")
        return _line("Kafka", f"{address} ({_started(self._kafka.start(detached=detached))})")

    def _registry_line(self, *, detached: bool) -> str:
        address = self.settings.registry
        if self._registry_start is None:
            if not registry.answers(address):
                self.warnings.append(
                    f"no schema registry answers at {address}; what needs one waits for it, or correct SCHEMA_REGISTRY_URL"
                )
            return _line("Schema registry", f"{address} (yours, by SCHEMA_REGISTRY_URL)")
        return _line("Schema registry", f"{address} ({_started(self._registry_start.wait()) if detached else 'starting'})")


class _Start:
    """The start of a server in a thread of its own, which does not keep this process from ending."""

    def __init__(self, server: EmbeddedServer, *, detached: bool) -> None:
        self.problem: StreamgaugeError | None = None
        self._server, self._detached, self._was_started = server, detached, False
        self._thread = threading.Thread(target=self._run, name=f"start of the {server.name}", daemon=True)
        self._thread.start()

    def wait(self) -> bool:
        """Waits until the server answers; whether it was started, or ran already. Raises what its `start` raises."""
        self._thread.join()
        if self.problem is not None:
            raise self.problem
        return self._was_started

    def _run(self) -> None:
        try:
            self._was_started = self._server.start(detached=self._detached)
        except StreamgaugeError as error:
            self.problem = error


def _stopped(name: str, server: EmbeddedServer | None, setting: str) -> str:
    if server is None:
        return _line(name, f"left alone: it is yours, by {setting}")
    return _line(name, "stopped" if server.stop() else "was not running")


def _started(was_started: bool) -> str:  # noqa: FBT001 - the answer of `start`
    return "started" if was_started else "was running"


def _line(name: str, text: str) -> str:
    return f"{name:{NAME_WIDTH}} {text}"
