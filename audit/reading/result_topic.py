"""Reads a result topic up to given offsets: the last row of each key."""

import json
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from audit.audited import Table
from audit.reading.records import records_between
from audit.values.json_texts import each_once
from audit.verdicts.comparison import Found, Unreadable
from contract.checkpoints.contents import Offsets
from contract.topic_values import value_decoder
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.errors import no_topic
from infrastructure.kafka.topic_ends import METADATA_SECONDS, first_and_end_offsets, partitions_by_topic
from infrastructure.settings import Settings

_MOST_BRACKETS = 2_000
"""A row has a few. What is nested deeper cannot be kept, or shown as JSON."""


@dataclass(frozen=True)
class TopicRows:
    """The rows of a topic up to an offset, by key; the key of a record without one is empty. later: the keys of records after it."""

    rows: Mapping[bytes, Found]
    later: Set[bytes]


def offsets_of(topic: Topic, settings: Settings) -> dict[tuple[str, int], tuple[int, int]]:
    """The first and end offsets of the topic. Raises TopicMissing."""
    numbers = partitions_by_topic(settings.kafka).get(topic.name)
    if not numbers:
        raise no_topic(settings.kafka, topic.name, METADATA_SECONDS)
    return first_and_end_offsets(settings.kafka, [(topic.name, number) for number in numbers])


def ends_of(topic: Topic, settings: Settings) -> Offsets:
    """The end offsets of the topic. Raises TopicMissing."""
    return {partition: end for partition, (_, end) in offsets_of(topic, settings).items()}


def rows_below(table: Table, limits: Offsets, settings: Settings) -> TopicRows:
    """The last row of each key below the limits."""
    offsets = offsets_of(table.topic, settings)
    starts, ends = ({partition: both[number] for partition, both in offsets.items()} for number in (0, 1))
    last, later = dict[bytes, bytes | None](), set[bytes]()
    for records in records_between(settings, starts, ends):
        columns = (records[name].to_pylist() for name in ("topic", "partition", "offset", "key", "value"))
        for topic, partition, offset, key, value in zip(*columns, strict=True):
            if offset < limits.get((topic, partition), 0):
                last[key or b""] = value
            else:
                later.add(key or b"")
    decode = decoder_of(table, settings)
    return TopicRows({key: read_value(decode, value) for key, value in last.items() if value is not None}, later)


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
    """A JSON value in UTF-8; its numbers are exact. Raises ValueError also for a name that is twice in an object: readers take either."""
    if value.count(b"[") + value.count(b"{") > _MOST_BRACKETS:
        msg = "nested too deep"
        raise ValueError(msg)
    return json.loads(value.decode(), parse_float=Decimal, object_pairs_hook=each_once)
