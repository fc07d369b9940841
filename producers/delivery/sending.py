"""Sends records to Kafka so that each arrives once: idempotent, acknowledged by all replicas, every delivery report checked.

Waits up to AWAY_SECONDS for an unavailable broker. Meanwhile records wait in a bounded queue, and `send` blocks when it is full. A record
that the broker rejects ends the run with an error that names it.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from contract.topics import MAX_RECORD_BYTES
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster, close_producer
from infrastructure.kafka.errors import CLOCKS_DIFFER, forbidden, is_forbidden, no_answer, no_topic, raise_if_access_denied
from infrastructure.process.waiting import AWAY_SECONDS, REQUEST_SECONDS
from producers.delivery.resume import when_it_answers

_SENDS_PER_POLL = 200
_FULL_QUEUE_WAIT_SECONDS = 0.1

Headers = Sequence[tuple[str, bytes]]

_ACCESS_DENIED = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_AWAY = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE, *_ACCESS_DENIED)
_TOO_LARGE = f"; the topic's max.message.bytes is smaller than the record, or it is above {MAX_RECORD_BYTES}"
_ADVICE = {
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE: _TOO_LARGE,
    KafkaError.INVALID_TIMESTAMP: f"; {CLOCKS_DIFFER}",
}


class _Refused(NamedTuple):
    topic: str
    key: bytes | None
    size_bytes: int
    error: KafkaError


class Delivery:
    """A producer for the Kafka at `kafka`. Reports to `notice` when Kafka becomes unavailable and when it is back."""

    def __init__(self, kafka: KafkaCluster, notice: Callable[[str], None], *, patience_seconds: float = AWAY_SECONDS) -> None:
        self._kafka, self._notice, self._patience_seconds = kafka, notice, patience_seconds
        self._sent = self._reported = 0
        self._refused: _Refused | None = None
        self._topic = ""
        self._away_since: float | None = None
        self._producer = kafka.producer(
            {
                "enable.idempotence": True,
                "acks": "all",
                "compression.type": "lz4",
                "batch.size": 512 * 1024,
                "message.max.bytes": MAX_RECORD_BYTES,
                "queue.buffering.max.kbytes": 128 * 1024,
                # Java clients choose the same partition for a key.
                "partitioner": "murmur2_random",
                "delivery.timeout.ms": int(patience_seconds * 1000),
                "reconnect.backoff.max.ms": 1000,
                "error_cb": self._on_error,
            }
        )

    @property
    def undelivered(self) -> int:
        """Number of records sent but not yet acknowledged."""
        return self._sent - self._reported

    def check(self, topic: str) -> None:
        """Waits until Kafka answers. Raises StreamgaugeError when it stays unavailable, or does not have the topic."""
        raise_if_access_denied(self._kafka)
        self._topic = topic
        when_it_answers(self._ask_for_topic, self._notice, self._patience_seconds)
        self._away_since = None

    def _ask_for_topic(self) -> None:
        try:
            topics = self._producer.list_topics(timeout=REQUEST_SECONDS).topics
        except KafkaException as error:
            raise no_answer(self._kafka, error) from error
        if self._topic not in topics:
            raise no_topic(self._kafka, self._topic, REQUEST_SECONDS)

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        *,
        headers: Headers = (),
        acknowledged: Callable[[], None] | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Queues a record, blocking while the queue is full. Returns False when `is_stopped` returned True before there was space.

        acknowledged: called during a later `send`, `wait` or `flush`, when Kafka has acknowledged the record.
        Raises StreamgaugeError when this or an earlier record was rejected.
        """
        while True:
            try:
                self._producer.produce(topic, value, key, headers=list(headers), on_delivery=partial(self._on_delivery, acknowledged))
                break
            except BufferError:
                if is_stopped():
                    return False
                self.wait(_FULL_QUEUE_WAIT_SECONDS)
            except KafkaException as error:
                self.wait(0)  # after a fatal error, this raises its cause
                self._refuse(_Refused(topic, key, len(value), error.args[0]))
                self._raise_if_refused()
        self._sent += 1
        if self._sent % _SENDS_PER_POLL == 0:
            self.wait(0)
        return True

    def wait(self, seconds: float) -> None:
        """Processes delivery reports for at most `seconds`. Raises StreamgaugeError when a record was rejected."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:  # a fatal one: this producer can send no more
            if is_forbidden(error.args[0]):
                raise forbidden(self._kafka, f"write to topic {self._topic}") from error
            msg = f"Kafka at {self._kafka} no longer accepts this producer ({error.args[0].str()}); start the producer again"
            raise StreamgaugeError(msg) from error
        self._raise_if_refused()

    def flush(self, seconds: float) -> int:
        """Waits up to `seconds` until all records are acknowledged. Returns the number of unacknowledged ones."""
        deadline = time.monotonic() + seconds
        while self.undelivered and (left := deadline - time.monotonic()) > 0:
            self.wait(min(left, 0.2))
        return self.undelivered

    def close(self) -> None:
        """Drops what is not acknowledged, and ends the producer's threads."""
        close_producer(self._producer, 0)

    def _on_delivery(self, acknowledged: Callable[[], None] | None, error: KafkaError | None, message: Message) -> None:
        self._reported += 1
        if error is not None:
            self._refuse(_Refused(message.topic() or "", message.key(), len(message.value() or b""), error))
            return
        if acknowledged is not None:
            acknowledged()
        if self._away_since is not None:
            self._notice(f"Kafka at {self._kafka} is back after {time.monotonic() - self._away_since:.0f} s")
            self._away_since = None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _AWAY and self._away_since is None and self._sent:
            self._away_since = time.monotonic()
            why = f" ({error.str()})" if error.code() in _ACCESS_DENIED else ""
            self._notice(f"Kafka at {self._kafka} does not answer{why}; waiting for it, up to {self._patience_seconds:.0f} s")

    def _refuse(self, refused: _Refused) -> None:
        # A broker rejects a whole batch because of its largest record, so the error names that one.
        if self._refused is None or refused.size_bytes > self._refused.size_bytes:
            self._refused = refused

    def _raise_if_refused(self) -> None:
        if self._refused is None:
            return
        topic, key, size_bytes, error = self._refused
        if error.code() == KafkaError._MSG_TIMED_OUT:
            msg = f"Kafka at {self._kafka} did not answer for more than {self._patience_seconds:.0f} s, and {self.undelivered + 1} records were not delivered; start it with `streamgauge up`, or correct KAFKA_BOOTSTRAP_SERVERS, and start the producer again"
            raise StreamgaugeError(msg)
        if is_forbidden(error):
            raise forbidden(self._kafka, f"write to topic {topic}")
        msg = f"Kafka refused a record for topic {topic}, key {key!r}, {size_bytes} bytes: {error.str()}{_ADVICE.get(error.code(), '')}"
        raise StreamgaugeError(msg)
