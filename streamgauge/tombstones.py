"""Deletes rows of a compacted topic: a null value for each key, which readers obey at once and compaction makes final."""

from collections.abc import Iterable

from streamgauge.errors import StreamgaugeError
from streamgauge.kafka_cluster import KafkaCluster
from streamgauge.topic_writer import TopicWriter


def delete_rows(kafka: KafkaCluster, topic: str, keys: Iterable[bytes]) -> int:
    """Writes a null value for each of `keys`, and waits until Kafka has them all; returns how many.

    Raises StreamgaugeError when Kafka does not take them; some rows may be deleted then, and doing it again deletes the rest.
    """
    writer = TopicWriter(kafka, topic)
    for key in keys:
        # A null in any other partition than the row's would delete nothing.
        writer.write(key, None)
    undelivered, reason = writer.undelivered()
    if undelivered:
        msg = f"Kafka at {kafka} did not take {undelivered} of {writer.written} deletions for topic {topic} ({reason}); see that it runs, and try again"
        raise StreamgaugeError(msg)
    return writer.written
