"""The Kafka that every program talks to, and the one place where its clients are made."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient


@dataclass(frozen=True)
class KafkaCluster:
    """A Kafka, and how it is to be talked to: for librdkafka's clients by `producer`, `consumer` and `admin`, for Spark's by `spark_options`.

    It is hashable, and as text it is `bootstrap_servers` alone, so that it can stand in any message.
    """

    bootstrap_servers: str

    def __str__(self) -> str:
        return self.bootstrap_servers

    def producer(self, config: Mapping[str, Any]) -> Producer:
        """A producer with `config`, in librdkafka's names."""
        return Producer(self._config(config))

    def consumer(self, config: Mapping[str, Any] = {}) -> Consumer:
        """A consumer with `config`. It is of a group of its own and commits nothing: who reads here says where to begin."""
        own = {"group.id": f"streamgauge-{uuid.uuid4()}", "enable.auto.commit": False}
        return Consumer(self._config({**own, **config}))

    def admin(self, config: Mapping[str, Any] = {}) -> AdminClient:
        """An admin client with `config`."""
        return AdminClient(self._config(config))

    def spark_options(self) -> dict[str, str]:
        """The options by which Spark's source and sink reach it."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers}

    def _config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        # What librdkafka would print is told by an error, or by whoever gives an `error_cb`.
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **config}
