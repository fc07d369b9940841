"""The platform as a whole: starts what is embedded, leaves alone what the user brought, creates the topics."""

from dataclasses import dataclass, field

from streamgauge.kafka_topics import create_topics
from streamgauge.local.kafka import EmbeddedKafka
from streamgauge.settings import Settings


@dataclass
class Platform:
    """What `up` starts and `down` stops."""

    settings: Settings
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kafka = EmbeddedKafka(self.settings)

    def start(self, *, detached: bool) -> list[str]:
        """Starts what is not running, creates missing topics; returns the addresses, a line a service.

        `detached`: it stays when this process ends. Warnings about topics with other settings are kept in `warnings`.
        """
        lines = []
        if self.settings.kafka_bootstrap_servers:
            lines.append(f"Kafka            {self.settings.bootstrap_servers} (yours, by KAFKA_BOOTSTRAP_SERVERS)")
        else:
            started = self._kafka.start(detached=detached)
            lines.append(f"Kafka            {self.settings.bootstrap_servers} ({'started' if started else 'was running'})")
        self.warnings = create_topics(self.settings.bootstrap_servers)
        return lines

    def stop(self) -> list[str]:
        """Stops what was started here, by this process or by another; returns a line a service."""
        if self.settings.kafka_bootstrap_servers:
            return ["Kafka            left alone: it is yours, by KAFKA_BOOTSTRAP_SERVERS"]
        stopped = self._kafka.stop()
        return [f"Kafka            {'stopped' if stopped else 'was not running'}"]

    def stop_guarded(self) -> None:
        """Stops what this process started with `detached=False`; what ran before stays."""
        if self._kafka.guarded is not None:
            self._kafka.stop()
