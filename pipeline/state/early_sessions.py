"""Sessions that are written before they are over: a stateful processor over `sessions.grown`."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle, TimerValues

from pipeline.state.sessions import Event, KeyState, Session, changed_newest, changed_sessions, grown, still_open

_SESSION = "start_ms bigint, last_ms bigint, events bigint"
# Each total is a struct of its own: Spark 4.3 stores no null as Avro among the elements of an array.
_STATE = f"sessions array<struct<{_SESSION}, totals array<struct<total decimal(22, 2)>>>>, seen array<struct<at_ms bigint, id string>>"


class EarlySessions(StatefulProcessor):
    """Handles Spark's calls, one key at a time: reads one value, writes one, and sets a timer for the session that ends first.

    There is a timer as long as there is a value. Events do not postpone it: it fires, finds which sessions are still open, and is set again.
    """

    def __init__(self, key: str, gap_ms: int, *, newest_only: bool) -> None:
        self._key, self._gap_ms, self._newest_only = key, gap_ms, newest_only

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._state = handle, handle.getValueState("known", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ANN401, N802, N803
        """Takes the events of one batch, in any order, and returns the sessions that they have changed."""
        before = self._read()
        after = grown(
            before, (Event(row.at_ms, row.id, tuple(row.totals)) for row in rows), timerValues.getCurrentWatermarkInMs(), self._gap_ms
        )
        self._write(after, is_timed=bool(before.sessions))
        changed = changed_newest if self._newest_only else changed_sessions
        return (self._row(key[0], start_ms, session) for start_ms, session in changed(before.sessions, after.sessions).items())

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:  # noqa: ANN401, ARG002, N802, N803
        """Removes the sessions that are over. Their rows stay as they are, unless each key has only one row."""
        before = self._read()
        after = still_open(before, timerValues.getCurrentWatermarkInMs(), self._gap_ms)
        self._write(after, is_timed=False)
        gone = changed_newest(before.sessions, after.sessions) if self._newest_only else {}
        return (self._row(key[0], start_ms, session) for start_ms, session in gone.items())

    def _read(self) -> KeyState:
        value = self._state.get()
        if value is None:
            return KeyState()
        sessions, seen = value
        return KeyState(
            tuple(Session(start, last, events, tuple(total for (total,) in totals)) for start, last, events, totals in sessions),
            frozenset(tuple(event) for event in seen),
        )

    def _write(self, state: KeyState, *, is_timed: bool) -> None:
        if not state.sessions:
            self._state.clear()
            return
        # Spark takes plain tuples and lists only.
        sessions = [(*session[:-1], [(total,) for total in session.totals]) for session in state.sessions]
        self._state.update((sessions, list(state.seen)))
        if not is_timed:
            self._handle.registerTimer(state.sessions[0].last_ms + self._gap_ms + 1)

    def _row(self, key: Any, start_ms: int, session: Session | None) -> Row:  # noqa: ANN401 - of any type
        if session is None:
            return Row(**{self._key: key, "start_ms": start_ms, "last_ms": None, "events": None, "totals": None})
        return Row(**{self._key: key, **session._asdict(), "totals": list(session.totals)})


def early_sessions(events: DataFrame, key: str, gap_ms: int, *, newest_only: bool = False) -> DataFrame:
    """The sessions of each key in a stream, whenever a batch has changed them.

    events: `key`, at_ms (long), id (string; two events with equal times and ids are one), totals (array of decimals with two digits: what to add
    up), and a column with a watermark.
    newest_only: of each key, the newest session until it is over.
    Returns `key`, start_ms, last_ms, events (long) and totals. Of a session that has become part of an earlier one, or with newest_only is
    over, only the first two.
    """
    return events.groupBy(key).transformWithState(
        EarlySessions(key, gap_ms, newest_only=newest_only),
        f"{key} {dict(events.dtypes)[key]}, {_SESSION}, totals array<decimal(22, 2)>",
        "Update",
        "EventTime",
    )
