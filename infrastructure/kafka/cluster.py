"""The Kafka cluster that all programs use. All of its clients are created here."""

import atexit
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from infrastructure.errors import StreamgaugeError
from infrastructure.security.client_security import VARIABLE, ClientSecurity

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

Client = TypeVar("Client")
_silent = logging.getLogger(f"{__name__}.librdkafka")
_silent.propagate = False
_silent.addHandler(logging.NullHandler())
GROUP_PREFIX = "streamgauge-"
"""Prefix of all consumer group names. librdkafka requires a name; no program uses a group, or needs permission to."""


def close_producer(producer: "Producer", seconds: float) -> None:
    """Sends the pending records for at most `seconds`, and ends the producer's threads.

    Closing matters: a thread that outlives Python uses OpenSSL after its clean-up, and the process ends with a segmentation fault.
    """
    producer.flush(seconds)
    producer.purge()  # otherwise `close` waits for them without limit
    producer.close()


@dataclass(frozen=True)
class KafkaCluster:
    """A Kafka cluster and its client settings. Creates librdkafka clients; `spark_options` configures Spark's.

    Hashable. As text it is only `bootstrap_servers`, so it is safe in any message. Creating a client raises StreamgaugeError when
    `security` is invalid, for example when a key does not match its certificate.
    """

    bootstrap_servers: str
    security: ClientSecurity = field(default=ClientSecurity())

    def __str__(self) -> str:
        return self.bootstrap_servers

    @property
    def addresses(self) -> list[str]:
        """The bootstrap servers, each as host:port."""
        return [address.strip().rpartition("://")[2] for address in self.bootstrap_servers.split(",") if address.strip()]

    def producer(self, config: Mapping[str, Any]) -> "Producer":
        """Creates a producer. `config` uses librdkafka's names."""
        from confluent_kafka import Producer

        return self._made(Producer, config)

    def consumer(self, config: Mapping[str, Any] = {}) -> "Consumer":
        """Creates a consumer in a unique group. It commits nothing; the caller assigns its partitions."""
        from infrastructure.kafka.consumer import GrouplessConsumer

        defaults = {
            "group.id": f"{GROUP_PREFIX}{uuid.uuid4()}",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,  # by default, a client whose queue was full waits for a second before it fetches more
        }
        return self._made(GrouplessConsumer, {**defaults, **config})

    def admin(self, config: Mapping[str, Any] = {}) -> "AdminClient":
        from confluent_kafka.admin import AdminClient

        return self._made(AdminClient, config)

    def spark_options(self) -> dict[str, str]:
        """Options for Spark's Kafka source and sink. They contain no secrets; Kafka's clients resolve those themselves."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **dict(self.security.spark)}

    def _made(self, make: Callable[[dict[str, Any]], Client], config: Mapping[str, Any]) -> Client:
        from confluent_kafka import KafkaException

        # Errors and `error_cb` already report what librdkafka logs. It logs fatal errors at every level, hence the silent logger.
        common = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "logger": _silent, **dict(self.security.librdkafka)}
        try:
            return make({**common, **config})
        except KafkaException as error:
            if not self.security.file:
                raise
            msg = f"{VARIABLE}={self.security.file} is not accepted by Kafka's client: {error.args[0].str()}; correct it (docs/security.md)"
            raise StreamgaugeError(msg) from error


@lru_cache(maxsize=1)
def shared_admin(kafka: KafkaCluster) -> "AdminClient":
    """The admin client that all of a process share: to connect takes longer than most answers. For questions whose answers are waited for."""
    return kafka.admin({"reconnect.backoff.max.ms": 500})  # reconnects as fast as a new client would


atexit.register(shared_admin.cache_clear)  # see close_producer
