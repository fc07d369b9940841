"""Reads a result topic up to given offsets: the last row of each key."""

import json
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from confluent_kafka import Message

from audit.audited import Table
from audit.comparison import Found, Unreadable
from contract.checkpoints.contents import Offsets
from contract.errors import StreamgaugeError
from contract.kafka.errors import no_topic
from contract.kafka.result_table import TableReader
from contract.kafka.topic_ends import METADATA_SECONDS, first_and_end_offsets, partitions_by_topic
from contract.registry.values import value_decoder
from contract.settings import Settings
from contract.topics import Topic


@dataclass(frozen=True)
class Held:
    """The rows in a topic. A record without a key has an empty one. later: the keys of records after them.

    lost_before: the time of the oldest record left, if older ones are deleted.
    """

    rows: Mapping[bytes, Found]
    later: Set[bytes]
    lost_before: datetime | None = None


def offsets_of(topic: Topic, settings: Settings) -> dict[tuple[str, int], tuple[int, int]]:
    """The first and end offsets of the topic. Raises TopicMissing."""
    numbers = partitions_by_topic(settings.kafka).get(topic.name)
    if not numbers:
        raise no_topic(settings.kafka, topic.name, METADATA_SECONDS)
    return first_and_end_offsets(settings.kafka, [(topic.name, number) for number in numbers])


def ends_of(topic: Topic, settings: Settings) -> Offsets:
    """The end offsets of the topic. Raises TopicMissing."""
    return {which: end for which, (_, end) in offsets_of(topic, settings).items()}


def held(table: Table, limits: Offsets, settings: Settings) -> Held:
    """The last row of each key below the limits."""
    with _Limited(settings, table.topic.name, limits).opened() as reader:
        reader.read_to_end()
    decode = decoder_of(table, settings)
    rows = {key: read_value(decode, value) for key, value in reader.held.items() if value is not None}
    has_lost = "delete" in table.topic.config.get("cleanup.policy", "delete") and any(
        first > 0 for first, _ in first_and_end_offsets(settings.kafka, limits).values()
    )
    oldest_ms = reader.oldest_ms
    lost_before = datetime.now(UTC) if oldest_ms is None else datetime.fromtimestamp(oldest_ms / 1000, UTC)
    return Held(rows, reader.later, lost_before if has_lost else None)


class _Limited(TableReader):
    """Reads the values below `limits` into `held`, a tombstone as None. oldest_ms: the timestamp of the oldest record, since 1970."""

    def __init__(self, settings: Settings, topic: str, limits: Offsets) -> None:
        super().__init__(settings.kafka, topic)
        self._limits = limits
        self.held: dict[bytes, bytes | None] = {}
        self.later: set[bytes] = set()
        self.oldest_ms: int | None = None

    def _apply(self, message: Message) -> None:
        if (message.offset() or 0) < self._limits.get((self._topic, message.partition() or 0), 0):
            self.held[message.key() or b""] = message.value()
            timestamp_ms = message.timestamp()[1]
            self.oldest_ms = timestamp_ms if self.oldest_ms is None else min(self.oldest_ms, timestamp_ms)
        else:
            self.later.add(message.key() or b"")


def decoder_of(table: Table, settings: Settings) -> Callable[[bytes], Any]:
    return value_decoder(table.topic, settings.registry, _json_row)


def read_value(decode: Callable[[bytes], Any], value: bytes) -> Found:
    """A row, or why it is none."""
    try:
        row = decode(value)
    except StreamgaugeError:
        raise
    except Exception as error:  # decoders raise many types; each means that this is no row
        return Unreadable(f"{type(error).__name__}: {error}")
    return row if isinstance(row, dict) else Unreadable(f"expected a JSON object, found {type(row).__name__}")


def _json_row(value: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """A JSON value; its numbers are exact."""
    return json.loads(value, parse_float=Decimal)
