"""Dead letters for display: their origin, the reason, and their bytes as text that is safe to print."""

from codecs import getincrementaldecoder
from contextlib import suppress
from datetime import UTC, datetime

from confluent_kafka import KafkaError, Message, TopicPartition

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import forbidden, is_forbidden
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.result_table import ANSWER_SECONDS, timestamp_ms_of
from infrastructure.rows import Row

EXCERPT_BYTES = 2_048
MAX_SHOWN_BYTES = 256 * 1024
_ORIGIN = ("topic", "partition", "offset", "timestamp", "reason")


def letter_of(message: Message) -> Row:
    """A dead letter as a row: letter_offset, at, the headers topic, partition, offset, timestamp and reason, bytes, text.

    letter_offset: its own offset. at: when it was written. bytes: its length. text: the first EXCERPT_BYTES as `readable` formats them.
    Raises KeyError, TypeError or UnicodeDecodeError when the record is not a dead letter.
    """
    headers = dict(headers_of(message))
    origin = {name: headers[name].decode() if headers.get(name) is not None else None for name in _ORIGIN}
    value, timestamp_ms = message.value(), timestamp_ms_of(message)
    return {
        "letter_offset": message.offset(),
        "at": None if timestamp_ms is None else datetime.fromtimestamp(timestamp_ms / 1000, UTC),
        **origin,
        "reason": origin["reason"] or "no reason given",
        "bytes": None if value is None else len(value),
        "text": readable(value, EXCERPT_BYTES),
    }


def readable(value: bytes | None, largest_bytes: int = MAX_SHOWN_BYTES) -> str:
    r"""The first `largest_bytes` of a value: as text if they are printable UTF-8, otherwise as Python writes bytes: b'\xff'."""
    if value is None:
        return ""
    shown = value[:largest_bytes]
    with suppress(UnicodeDecodeError):
        # Incrementally, because the cut may split a character.
        text = getincrementaldecoder("utf-8")().decode(shown, final=shown == value)
        if all(character.isprintable() or character in "\t\n\r" for character in text):
            return text
    return repr(shown)


def whole_letter(kafka: KafkaCluster, topic: str, letter_offset: int) -> bytes | None:
    """The raw bytes of one dead letter, by its own offset. None for a null value.

    Raises StreamgaugeError when Kafka does not answer, or no longer has the letter.
    """
    consumer = kafka.consumer({"auto.offset.reset": "error"})
    try:
        consumer.assign([TopicPartition(topic, 0, letter_offset)])
        message = consumer.poll(ANSWER_SECONDS)
    finally:
        consumer.close()
    error = KafkaError(KafkaError._TIMED_OUT) if message is None else message.error()
    if is_forbidden(error):
        raise forbidden(kafka, f"read topic {topic}")
    if message is None or error is not None or message.offset() != letter_offset:
        why = "it is gone" if error is None else error.str()
        msg = f"dead letter {letter_offset} of topic {topic} at {kafka} cannot be read ({why}); dead letters are kept for 30 days"
        raise StreamgaugeError(msg)
    return message.value()


def source_of(letter: Row) -> str:
    """The record's source position, such as "nest-logs-0 @ 1234". Only the topic if it was never a record there."""
    if letter["offset"] in {None, "-1"}:
        return str(letter["topic"])
    return f"{letter['topic']}-{letter['partition']} @ {letter['offset']}"
