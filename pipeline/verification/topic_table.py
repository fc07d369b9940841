"""The table in a compacted topic up to given offsets, as raw bytes."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from contract.errors import StreamgaugeError
from contract.kafka.errors import is_about_group, unreadable
from contract.settings import Settings
from contract.topics import Topic
from pipeline.checkpoint.contents import Offsets
from pipeline.sources.kafka import first_and_end_offsets, source_partitions

SILENCE_SECONDS = 30


@dataclass
class TopicTable:
    """The last value of each key below the limits. A key whose last record is a tombstone is absent.

    newer: keys with a record at or above the limits, for which compaction may have removed the record below. keyless: number of records
    without a key.
    """

    values: dict[bytes, bytes] = field(default_factory=dict)
    newer: set[bytes] = field(default_factory=set)
    keyless: int = 0

    def apply(self, message: Message, limit: int) -> None:
        """Adds a record."""
        key, value = message.key(), message.value()
        if key is None:
            self.keyless += 1
        elif (message.offset() or 0) >= limit:
            self.newer.add(key)
        elif value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value


def ends_of(topics: Iterable[Topic], settings: Settings) -> Offsets:
    """The end offsets of `topics`. Raises as first_and_end_offsets and source_partitions."""
    partitions = [partition for topic in topics for partition in source_partitions(settings, topic.name)]
    return {which: end for which, (_, end) in first_and_end_offsets(settings, partitions).items()}


def read_table(settings: Settings, limits: Offsets) -> TopicTable:
    """Reads each partition of `limits` from its beginning to its end. Records at or above the limit count as newer.

    Raises StreamgaugeError when Kafka does not respond or stops responding.
    """
    consumer = settings.kafka.consumer({"enable.partition.eof": True, "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in limits])
    try:
        return _read(consumer, limits)
    except KafkaException as error:
        if not_allowed := unreadable(settings.kafka, ", ".join(sorted({topic for topic, _ in limits})), error.args[0]):
            raise not_allowed from error
        msg = f"a result topic at {settings.kafka} can no longer be read: {error.args[0].str()}; verify again"
        raise StreamgaugeError(msg) from error
    finally:
        consumer.close()


def _read(consumer: Consumer, limits: Offsets) -> TopicTable:
    table, unfinished, heard_at = TopicTable(), set(limits), time.monotonic()
    while unfinished:
        for message in consumer.consume(10_000, timeout=0.5):
            heard_at = time.monotonic()
            which = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                table.apply(message, limits[which])
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(which)
            elif not is_about_group(error):
                raise KafkaException(error)
        if time.monotonic() - heard_at > SILENCE_SECONDS:
            msg = f"Kafka sent nothing for {SILENCE_SECONDS} s before the end of topic {min(unfinished)[0]}; see the broker's log"
            raise StreamgaugeError(msg)
    return table
