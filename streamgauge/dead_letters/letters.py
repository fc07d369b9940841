"""The letters in topic dead-letters, each with the place of its record."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from confluent_kafka import Message

from contract.domains import TOPICS
from contract.topics import DEAD_LETTERS
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.result_table import timestamp_ms_of
from infrastructure.text import escaped, utc_text
from streamgauge.records.reader import TopicRecords
from streamgauge.records.start import Start

_HEADERS = ("timestamp", "reason")
_SOURCES = {topic.name for topic in TOPICS if topic.is_source}


@dataclass(frozen=True)
class Letter:
    """A dead letter. key: its own, canonical JSON. at_ms: when it was written, since 1970. topic, partition, offset: of its record.

    reader: what could not use the record; empty for a domain. offset: None for input that never was a record.
    """

    key: bytes
    value: bytes | None
    at_ms: int | None
    topic: str
    partition: int
    offset: int | None
    reader: str
    timestamp: str | None
    reason: str

    @classmethod
    def of(cls, message: Message) -> "Letter | None":
        """The letter in a record; None if it holds none."""
        try:
            key: dict[str, Any] = orjson.loads(message.key() or b"")
            topic, reader = key["topic"], key.get("reader", "")
            partition, offset = int(key["partition"]), int(key["offset"])
        except (ValueError, KeyError, TypeError):
            return None
        if not (isinstance(topic, str) and isinstance(reader, str)):
            return None
        texts = {name: (value or b"").decode(errors="replace") for name, value in headers_of(message) if name in _HEADERS}
        was_record = offset >= 0
        return cls(
            message.key() or b"",
            message.value(),
            timestamp_ms_of(message),
            topic,
            partition,
            offset if was_record else None,
            reader,
            texts.get("timestamp"),
            texts.get("reason", ""),
        )

    @property
    def is_of_row(self) -> bool:
        """Whether its record is a row of a table: of an ingested topic, or, by a letter of another program, of any topic but a domain's source."""
        return bool(self.reader) or self.topic not in _SOURCES

    def as_json(self) -> str:
        """A line of JSON, safe to print. value: its bytes as Base64; null for a null value."""
        at = None if self.at_ms is None else utc_text(datetime.fromtimestamp(self.at_ms / 1000, UTC))
        value = None if self.value is None else base64.b64encode(self.value).decode()
        origin = {"topic": self.topic, "partition": self.partition, "offset": self.offset, "timestamp": self.timestamp}
        return escaped(json.dumps({"at": at, **origin, "reader": self.reader, "reason": self.reason, "value": value}, ensure_ascii=False))


@dataclass(frozen=True)
class Choice:
    """Which letters: those whose reason contains `reason`, of records of `topic`, written from `since` on."""

    reason: str = ""
    topic: str | None = None
    since: Start = Start(offset=0)

    def letters(self, kafka: KafkaCluster) -> Iterator[Letter]:
        """The letters in the topic now, oldest first; one of a batch that ran twice is there twice. Raises StreamgaugeError as TopicRecords."""
        with TopicRecords(kafka, DEAD_LETTERS.name, self.since).opened() as reader:
            for message in reader.present():
                letter = Letter.of(message)
                if letter is not None and self.reason in letter.reason and self.topic in {None, letter.topic}:
                    yield letter
