"""The sessions of one key: runs of events, each of which follows another within a gap. Pure functions; `early_sessions` runs them in Spark.

An event is a session of its own until it is joined with others. So the sessions of the same events are the same in whatever order and
batches they come.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple


class Event(NamedTuple):
    """An event. Two with the same time and id are one. totals: what to add up."""

    at_ms: int
    id: str = ""
    totals: tuple[Decimal | None, ...] = ()


class Session(NamedTuple):
    """start_ms, last_ms: times of its first and last event, ms since 1970. totals: sums over its events; None where all of them are null."""

    start_ms: int
    last_ms: int
    events: int = 1
    totals: tuple[Decimal | None, ...] = ()


class Known(NamedTuple):
    """The state of a key. sessions: those that are open, in order of time. seen: times and ids of events that may come again."""

    sessions: tuple[Session, ...] = ()
    seen: frozenset[tuple[int, str]] = frozenset()


def grown(known: Known, events: Iterable[Event], watermark_ms: int, gap_ms: int) -> Known:
    """Takes events into the state. Those that it has seen change nothing; none up to the watermark comes again."""
    new = {event[:2]: Session(event.at_ms, event.at_ms, totals=event.totals) for event in events if event[:2] not in known.seen}
    return Known(
        joined([*known.sessions, *new.values()], gap_ms), frozenset(one for one in known.seen | new.keys() if one[0] >= watermark_ms)
    )


def still_open(known: Known, watermark_ms: int, gap_ms: int) -> Known:
    """Keeps the sessions that an event after the watermark can still join."""
    return known._replace(sessions=tuple(session for session in known.sessions if session.last_ms + gap_ms >= watermark_ms))


def joined(sessions: Iterable[Session], gap_ms: int) -> tuple[Session, ...]:
    """Joins sessions that are at most `gap_ms` apart. Returns them in order of time."""
    found: list[Session] = []
    for session in sorted(sessions, key=lambda session: session.start_ms):
        if found and session.start_ms - found[-1].last_ms <= gap_ms:
            found[-1] = _one_of(found[-1], session)
        else:
            found.append(session)
    return tuple(found)


def changes(before: Iterable[Session], after: Iterable[Session]) -> dict[int, Session | None]:
    """By start, the sessions of `after` that are not in `before`; None for a start that is gone, as its session has become part of another."""
    known = {session.start_ms: session for session in before}
    found = {session.start_ms: session for session in after}
    gone = dict.fromkeys(known.keys() - found.keys())
    return gone | {start_ms: session for start_ms, session in found.items() if known.get(start_ms) != session}


def newest_change(before: Sequence[Session], after: Sequence[Session]) -> dict[int, Session | None]:
    """By start, the newest session of `after` unless it is that of `before`; None for the start of the last one when none is left."""
    if not after:
        return {session.start_ms: None for session in before[-1:]}
    return {} if after[-1:] == before[-1:] else {after[-1].start_ms: after[-1]}


def _one_of(first: Session, second: Session) -> Session:
    totals = tuple(_sum(*both) for both in zip(first.totals, second.totals, strict=True))
    return Session(first.start_ms, max(first.last_ms, second.last_ms), first.events + second.events, totals)


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """As in SQL, nulls do not count."""
    return one if other is None else other if one is None else one + other
