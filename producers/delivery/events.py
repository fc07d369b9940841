"""What a domain hands to the shared machinery: an event, ready to be sent, with the little that must be known about it."""

from collections.abc import Callable
from typing import NamedTuple

MS_PER_SECOND = 1000

Fact = tuple[str, int]
"""(id, time in ms since 1970): what counts once downstream, however many events report it."""


class Event(NamedTuple):
    """One record of a source topic.

    event_time_ms   how far the stream has come with it, ms since 1970; a stream is in the order of this time
    oldest_time_ms  the oldest time in it that readers hold against their watermark; at most event_time_ms
    key, value      the record's bytes, as they are sent
    facts           what it states; a fact that several events state counts once
    is_usable       False when it is damaged from the start (a bad line of a recording)
    headers         (name, value) that go along with the record
    topic           where it goes when that is not the stream's own topic, such as the dead letters
    mark            what `Run.acknowledged` is told once Kafka has the record; None: nothing is
    """

    event_time_ms: int
    oldest_time_ms: int
    key: bytes | None
    value: bytes
    facts: tuple[Fact, ...] = ()
    is_usable: bool = True
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str | None = None
    mark: int | None = None


class Idle(NamedTuple):
    """How a stream waits for what is not there yet: shortly, so that Kafka's answers are looked at meanwhile, and not beyond a stop.

    wait: is given seconds, and returns after about as many, or earlier.
    """

    wait: Callable[[float], None]
    is_stopped: Callable[[], bool]
