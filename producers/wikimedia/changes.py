"""Turns changes of Wikimedia's wikis - live, recorded or simulated - into events with Avro values.

All three sources take the same path: JSON text, converted to the schema's fields (`edit_event`), encoded. Text that is not a change
becomes a dead letter with a reason. The record's key is "<wiki>:<page title>", so the changes of a page stay in order. Its fact, counted
once as an edit, is the meta.id of an edit.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from contract.domains.wikimedia import WIKIMEDIA
from contract.json_text import repeats_a_name
from contract.topics import DEAD_LETTERS, MAX_RECORD_BYTES, MAX_VALUE_BYTES
from infrastructure.text import utc_text
from producers.delivery.events import MS_PER_SECOND, Event, Source
from producers.delivery.summary import Summary
from producers.wikimedia.avro import Encode
from producers.wikimedia.edits import Edit, edit_event, is_canary
from producers.wikimedia.position import RecentIds
from producers.wikimedia.server_sent_events import MESSAGE

_TOO_LONG = f"longer than the {MAX_RECORD_BYTES:,} bytes of a record"
_REASON_LETTERS = 1000
EVENT_ID, SOURCE = "event_id", "source"
"""Headers of every record: the meta.id of the change, and the Source that it came from."""


class _UnusableError(Exception):
    """Text that becomes a dead letter. The message is the reason."""


class Arrival(NamedTuple):
    """An event's text and type as received. is_done: called when Kafka has it, or when it needs no record."""

    text: bytes
    is_done: Callable[[], None] | None = None
    type: str = MESSAGE


@dataclass
class Changes:
    """Turns arrivals into events, and counts those that produce no record.

    recent: recently received ids, for streams that may repeat events (after a reconnect).
    """

    source: Source
    recent: RecentIds | None = None
    canaries: int = 0
    repeated: int = 0
    _stream_time_ms: int = field(default=0, repr=False)

    def events(self, arrivals: Iterable[Arrival], encode: Encode) -> Iterator[Event]:
        """The events of the arrivals, in order of arrival. Stream time is the greatest time so far."""
        for arrival in arrivals:
            event = self._event(arrival, encode)
            if event is not None:
                yield event
            elif arrival.is_done is not None:
                arrival.is_done()

    def skipped(self) -> Summary:
        """The counts of arrivals that produced no record."""
        return {
            "canaries": (self.canaries, "skipped: artificial events of Wikimedia's monitoring"),
            "repeated": (self.repeated, "skipped: came again after a reconnect"),
        }

    def _event(self, arrival: Arrival, encode: Encode) -> Event | None:
        try:
            return self._usable(arrival, encode)
        except _UnusableError as error:
            return self._dead_letter(arrival, str(error))

    def _usable(self, arrival: Arrival, encode: Encode) -> Event | None:
        """The event of a change. None if it needs no record. Raises _UnusableError with the reason if it is no change."""
        change = _parsed(arrival)
        if is_canary(change):
            self.canaries += 1
            return None
        edit = edit_event(change)
        if isinstance(edit, str):
            raise _UnusableError(edit)
        event_id = edit["meta"]["id"]
        if self.recent is not None and not self.recent.is_new(event_id):
            self.repeated += 1
            return None
        key, value = f"{edit['wiki']}:{edit['title']}".encode(), _encoded(edit, encode)
        if len(key) + len(value) + len(event_id.encode()) > MAX_VALUE_BYTES:
            raise _UnusableError(_TOO_LONG)
        time_ms = edit["timestamp"] * MS_PER_SECOND
        self._stream_time_ms = max(self._stream_time_ms, time_ms)
        return Event(
            self._stream_time_ms,
            time_ms,
            key,
            value,
            facts=((event_id, time_ms),) if edit["type"] == "edit" else (),
            headers=((SOURCE, self.source.encode()), (EVENT_ID, event_id.encode())),
            acknowledged=arrival.is_done,
        )

    def _dead_letter(self, arrival: Arrival, reason: str) -> Event:
        """The arrival as a dead letter. Partition and offset are -1, because no record exists yet."""
        is_cut = f"; only its first {MAX_VALUE_BYTES:,} bytes are kept" if len(arrival.text) > MAX_VALUE_BYTES else ""
        reason = f"{reason:.{_REASON_LETTERS}}{is_cut}"
        origin = {"offset": -1, "partition": -1, "topic": WIKIMEDIA.name}
        key = orjson.dumps({**origin, "sha256": hashlib.sha256(arrival.text).hexdigest()}, option=orjson.OPT_SORT_KEYS)
        now = utc_text(datetime.now(UTC))
        headers = {"topic": WIKIMEDIA.name, "partition": "-1", "offset": "-1", "timestamp": now, "reason": reason, SOURCE: self.source}
        return Event(
            self._stream_time_ms,
            self._stream_time_ms,
            key,
            arrival.text[:MAX_VALUE_BYTES],
            is_usable=False,
            headers=tuple((name, value.encode()) for name, value in headers.items()),
            topic=DEAD_LETTERS.name,
            acknowledged=arrival.is_done,
        )


def _parsed(arrival: Arrival) -> Any:  # noqa: ANN401 - any JSON value
    if arrival.type != MESSAGE:
        msg = f"an event of type {arrival.type!r}, not a change"
        raise _UnusableError(msg)
    if len(arrival.text) > MAX_RECORD_BYTES:
        raise _UnusableError(_TOO_LONG)
    try:
        change = orjson.loads(arrival.text)
    except orjson.JSONDecodeError as error:
        msg = f"not JSON: {error}"
        raise _UnusableError(msg) from error
    if repeats_a_name(arrival.text):
        msg = "a name is there twice in an object"
        raise _UnusableError(msg)
    if isinstance(change, dict) and isinstance(change.get("log_params"), dict | list | float):
        with suppress(RecursionError):  # what is nested so deep is no change either way
            change["log_params"] = _with_all_digits(arrival.text)["log_params"]
    return change


def _with_all_digits(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a JSON text, its numbers as they are written: orjson rounds those that no double holds."""
    return json.loads(text, parse_int=orjson.Fragment, parse_float=orjson.Fragment)


def _encoded(edit: Edit, encode: Encode) -> bytes:
    try:
        return encode(edit)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        msg = f"not by the schema: {error}"
        raise _UnusableError(msg) from error
