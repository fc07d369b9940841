"""The event type that a domain passes to the shared delivery code."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

MS_PER_SECOND = 1000

Fact = tuple[str, int]
"""(id, time in ms since 1970): counted once downstream, however many events report it."""


class Source(StrEnum):
    """Where events come from."""

    LIVE = "live"
    SIMULATED = "simulated"
    RECORDED = "recorded"


class Event(NamedTuple):
    """One record of a source topic.

    event_time_ms   the stream's event time at this event, ms since 1970; streams are ordered by it
    oldest_time_ms  the oldest time in the event that readers compare with their watermark; at most event_time_ms
    key, value      the record's bytes
    facts           the facts that it reports; a fact reported by several events counts once
    is_usable       False when it is damaged from the start (a bad line of a recording)
    headers         the record's headers as (name, value)
    topic           the destination if it is not the stream's own topic, such as the dead letters
    acknowledged    called when Kafka has acknowledged the record
    """

    event_time_ms: int
    oldest_time_ms: int
    key: bytes | None
    value: bytes
    facts: tuple[Fact, ...] = ()
    is_usable: bool = True
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str | None = None
    acknowledged: Callable[[], None] | None = None


class Idle(NamedTuple):
    """How a stream waits for data: in short waits that also process Kafka's responses, and that end on a stop.

    wait: waits for about the given seconds, or less.
    """

    wait: Callable[[float], None]
    is_stopped: Callable[[], bool]
