"""Deletes rows of a compacted topic: a null value for each key, which readers obey at once and compaction makes final."""

from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, Message, Producer

from streamgauge.errors import StreamgaugeError

FLUSH_SECONDS = 30


def delete_rows(bootstrap_servers: str, topic: str, keys: Iterable[bytes]) -> int:
    """Writes a null value for each of `keys`, and waits until Kafka has them all; returns how many.

    Raises StreamgaugeError when Kafka does not take them; some rows may be deleted then, and doing it again deletes the rest.
    """
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "linger.ms": 20,
            # The partition that Java's clients, and so Spark, choose for the key: a null anywhere else would delete nothing.
            "partitioner": "murmur2_random",
            "message.timeout.ms": FLUSH_SECONDS * 1000,
            "log_level": 0,
        }
    )
    count = 0
    for count, key in enumerate(keys, start=1):  # noqa: B007 - it is returned
        _produce(producer, topic, key, note)
    unsent = producer.flush(FLUSH_SECONDS)
    if failures or unsent:
        reason = failures[0].str() if failures else f"no answer within {FLUSH_SECONDS} s"
        msg = f"Kafka at {bootstrap_servers} did not take {len(failures) + unsent} of {count} deletions for topic {topic} ({reason}); see that it runs, and try again"
        raise StreamgaugeError(msg)
    return count


def _produce(producer: Producer, topic: str, key: bytes, note: Callable[[KafkaError | None, Message], None]) -> None:
    while True:
        try:
            producer.produce(topic, key=key, value=None, on_delivery=note)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
