"""Takes the dead letters of one source, a topic or a folder of files, out of the topic that all sources share.

Kafka deletes records only from a topic's beginning. So the letters that are to stay are written again, with their own times, and then
all that was there before them is deleted. Letters that arrive meanwhile stand behind and stay. Cut off in between, some letters are there
twice, as after a batch that was run again: the same record has the same key.
"""

import time
from collections.abc import Iterator
from contextlib import closing

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from streamgauge.errors import StreamgaugeError
from streamgauge.kafka_errors import forbidden, is_forbidden, no_answer, reason, unreadable
from streamgauge.result_table import timestamp_ms_of
from streamgauge.settings import Settings
from streamgauge.topic_writer import TopicWriter
from streamgauge.topics import DEAD_LETTERS, LARGEST_RECORD_BYTES

ANSWER_SECONDS = 10
SILENCE_SECONDS = 30


def count_letters(source: str, reader: str, settings: Settings) -> int:
    """How many letters `reader` has written about records of `source`."""
    return sum(is_of_source(letter.key(), source, reader) for letter in _letters(settings, _ends(settings)))


def remove_letters(source: str, reader: str, settings: Settings) -> None:
    """Takes the letters that `reader` has written about records of `source` out of the topic; those that a producer wrote stay.

    Raises StreamgaugeError when Kafka does not do as it is told; it can be done again.
    """
    ends = _ends(settings)
    writer = TopicWriter(settings.kafka, DEAD_LETTERS.name)
    for letter in _letters(settings, ends):
        if not is_of_source(letter.key(), source, reader):
            writer.write(letter.key(), letter.value(), headers=letter.headers(), timestamp=timestamp_ms_of(letter) or 0)
    undelivered, why = writer.undelivered()
    if undelivered:
        msg = f"Kafka did not take the letters that are to stay in topic {DEAD_LETTERS.name} ({why}); nothing was deleted: see that it runs, and try again"
        raise StreamgaugeError(msg)
    admin = settings.kafka.admin()
    try:
        for done in admin.delete_records([TopicPartition(DEAD_LETTERS.name, number, end) for number, end in ends.items()]).values():
            done.result(ANSWER_SECONDS)
    except (KafkaException, TimeoutError) as error:
        msg = f"Kafka did not delete the letters from topic {DEAD_LETTERS.name}: {reason(error, ANSWER_SECONDS)}; grant the right to, or let them lie: those of the next run have the same keys"
        raise StreamgaugeError(msg) from error


def is_of_source(key: bytes | None, source: str, reader: str = "") -> bool:
    """Whether a letter with that key was written by a query that calls itself `reader`, about a record of `source`: a topic, or `files:/folder`."""
    try:
        origin = orjson.loads(key or b"")
        is_of_it = origin["topic"] == source or origin["topic"].startswith(f"{source}/")  # topics have no slash
        return is_of_it and origin["offset"] >= 0 and origin.get("reader", "") == reader
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _ends(settings: Settings) -> dict[int, int]:
    """The end offset of each partition that holds anything."""
    with closing(_consumer(settings)) as consumer:
        try:
            described = consumer.list_topics(DEAD_LETTERS.name, ANSWER_SECONDS).topics[DEAD_LETTERS.name]
            if is_forbidden(described.error):
                raise forbidden(settings.kafka, f"see topic {DEAD_LETTERS.name}")
            partitions = [TopicPartition(DEAD_LETTERS.name, number) for number in described.partitions]
            offsets = {of.partition: consumer.get_watermark_offsets(of, ANSWER_SECONDS) for of in partitions}
        except KafkaException as error:
            raise no_answer(settings.kafka, error) from error
    return {number: end for number, (first, end) in offsets.items() if first < end}


def _letters(settings: Settings, ends: dict[int, int]) -> Iterator[Message]:
    """The letters up to `ends`."""
    ahead, heard_at = dict(ends), time.monotonic()
    with closing(_consumer(settings)) as consumer:
        consumer.assign([TopicPartition(DEAD_LETTERS.name, number, OFFSET_BEGINNING) for number in ends])
        while ahead:
            message = consumer.poll(0.5)
            if message is None:
                if time.monotonic() - heard_at > SILENCE_SECONDS:
                    msg = f"Kafka at {settings.kafka} fell silent for {SILENCE_SECONDS} s before the end of topic {DEAD_LETTERS.name}; see the broker's log"
                    raise StreamgaugeError(msg)
                continue
            heard_at = time.monotonic()
            number, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if not_allowed := unreadable(settings.kafka, DEAD_LETTERS.name, error):
                raise not_allowed
            if error is None and offset < ends[number]:
                yield message
            if (error is None and offset + 1 >= ends[number]) or (error is not None and error.code() == KafkaError._PARTITION_EOF):
                ahead.pop(number, None)


def _consumer(settings: Settings) -> Consumer:
    return settings.kafka.consumer({"enable.partition.eof": True, "fetch.message.max.bytes": LARGEST_RECORD_BYTES})
