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


class KeyState(NamedTuple):
    """The state of a key. sessions: those that are open, in order of time. seen: times and ids of events that may come again."""

    sessions: tuple[Session, ...] = ()
    seen: frozenset[tuple[int, str]] = frozenset()


def grown(state: KeyState, events: Iterable[Event], watermark_ms: int, gap_ms: int) -> KeyState:
    """Adds events to the state. Events that it has seen change nothing. An event up to the watermark does not come again."""
    new = {event[:2]: Session(event.at_ms, event.at_ms, totals=event.totals) for event in events if event[:2] not in state.seen}
    return KeyState(
        joined([*state.sessions, *new.values()], gap_ms), frozenset(event for event in state.seen | new.keys() if event[0] >= watermark_ms)
    )


def still_open(state: KeyState, watermark_ms: int, gap_ms: int) -> KeyState:
    """Keeps the sessions that an event after the watermark can still join."""
    return state._replace(sessions=tuple(session for session in state.sessions if session.last_ms + gap_ms >= watermark_ms))


def joined(sessions: Iterable[Session], gap_ms: int) -> tuple[Session, ...]:
    """Joins sessions that are at most `gap_ms` apart. Returns them in order of time."""
    result: list[Session] = []
    for session in sorted(sessions, key=lambda session: session.start_ms):
        if result and session.start_ms - result[-1].last_ms <= gap_ms:
            result[-1] = _joined(result[-1], session)
        else:
            result.append(session)
    return tuple(result)


def changed_sessions(before: Iterable[Session], after: Iterable[Session]) -> dict[int, Session | None]:
    """The sessions of `after` that are not in `before`, by start. None for a session that has become part of another one."""
    old, new = ({session.start_ms: session for session in sessions} for sessions in (before, after))
    gone = dict.fromkeys(old.keys() - new.keys())
    return gone | {start_ms: session for start_ms, session in new.items() if old.get(start_ms) != session}


def changed_newest(before: Sequence[Session], after: Sequence[Session]) -> dict[int, Session | None]:
    """The newest session of `after`, by start, unless it is also that of `before`. None for the last session when none is left."""
    if not after:
        return {session.start_ms: None for session in before[-1:]}
    return {} if after[-1:] == before[-1:] else {after[-1].start_ms: after[-1]}


def _joined(first: Session, second: Session) -> Session:
    totals = tuple(_sum(*both) for both in zip(first.totals, second.totals, strict=True))
    return Session(first.start_ms, max(first.last_ms, second.last_ms), first.events + second.events, totals)


def _sum(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    """As in SQL, nulls do not count."""
    return first if second is None else second if first is None else first + second
