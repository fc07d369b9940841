"""The Kafka that every program talks to, and the one place where its clients are made."""

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from contract.errors import StreamgaugeError
from contract.security.client_security import VARIABLE, ClientSecurity

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

Client = TypeVar("Client")
_silent = logging.getLogger(f"{__name__}.librdkafka")
_silent.propagate = False
_silent.addHandler(logging.NullHandler())
GROUP_PREFIX = "streamgauge-"
"""How the names of all consumer groups begin: a consumer has to have one, and the right to it."""


@dataclass(frozen=True)
class KafkaCluster:
    """A Kafka, and how it is to be talked to: for librdkafka's clients by `producer`, `consumer` and `admin`, for Spark's by `spark_options`.

    It is hashable, and as text it is `bootstrap_servers` alone, so that it can stand in any message. Making a client raises StreamgaugeError
    when `security` cannot be followed: a key that does not fit its certificate, say.
    """

    bootstrap_servers: str
    security: ClientSecurity = field(default=ClientSecurity())

    def __str__(self) -> str:
        return self.bootstrap_servers

    @property
    def addresses(self) -> list[str]:
        """Where it is asked first, each as host:port."""
        return [address.strip().rpartition("://")[2] for address in self.bootstrap_servers.split(",") if address.strip()]

    def producer(self, config: Mapping[str, Any]) -> "Producer":
        """A producer with `config`, in librdkafka's names."""
        from confluent_kafka import Producer

        return self._made(Producer, config)

    def consumer(self, config: Mapping[str, Any] = {}) -> "Consumer":
        """A consumer with `config`. It is of a group of its own and commits nothing: who reads here says where to begin."""
        from confluent_kafka import Consumer

        own = {"group.id": f"{GROUP_PREFIX}{uuid.uuid4()}", "enable.auto.commit": False}
        return self._made(Consumer, {**own, **config})

    def admin(self, config: Mapping[str, Any] = {}) -> "AdminClient":
        """An admin client with `config`."""
        from confluent_kafka.admin import AdminClient

        return self._made(AdminClient, config)

    def spark_options(self) -> dict[str, str]:
        """The options by which Spark's source and sink reach it. They hold no secret: what is one, Kafka's clients look up themselves."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **dict(self.security.spark)}

    def _made(self, make: Callable[[dict[str, Any]], Client], config: Mapping[str, Any]) -> Client:
        from confluent_kafka import KafkaException

        # What librdkafka would print is told by an error, or by whoever gives an `error_cb`; what is fatal it prints at every level.
        common = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "logger": _silent, **dict(self.security.librdkafka)}
        try:
            return make({**common, **config})
        except KafkaException as error:
            if not self.security.file:
                raise
            msg = f"{VARIABLE}={self.security.file} does not make a client: {error.args[0].str()}; correct it, docs/security.md says how"
            raise StreamgaugeError(msg) from error
