"""Turns changes of Wikimedia's wikis - live, recorded or simulated - into events with Avro values.

All three sources take the same path: JSON text, converted to the schema's fields (`edit_event`), encoded. Text that is not a change
becomes a dead letter with a reason. The record's key is "<wiki>:<page title>", so the changes of a page stay in order. Its fact, counted
once as an edit, is the meta.id of an edit.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

import orjson

from contract.domains.wikimedia import WIKIMEDIA
from contract.text import utc_text
from contract.topics import DEAD_LETTERS
from producers.delivery.events import MS_PER_SECOND, Event
from producers.wikimedia.avro import Encode
from producers.wikimedia.edits import edit_event, is_canary
from producers.wikimedia.position import RecentIds

EVENT_ID = "event_id"
SOURCE = "source"


class Source(StrEnum):
    """The source of changes, and the value of the header `source` of every record."""

    LIVE = "live"
    SIMULATED = "simulated"
    RECORDED = "recorded"


class Arrival(NamedTuple):
    """An event's text as received, and the mark that advances the live stream's position."""

    text: bytes
    mark: int | None = None


@dataclass
class Changes:
    """Turns arrivals into events, and counts those that produce no record.

    recent: recently received ids, for streams that may repeat events (after a reconnect). needs_no_record: called with the mark of each
    skipped arrival.
    """

    encode: Encode
    source: Source
    recent: RecentIds | None = None
    needs_no_record: Callable[[int], None] = lambda _: None
    canaries: int = 0
    repeated: int = 0
    _stream_time_ms: int = field(default=0, repr=False)

    def events(self, arrivals: Iterable[Arrival]) -> Iterator[Event]:
        """The events of the arrivals, in order of arrival. Stream time is the greatest time so far."""
        for arrival in arrivals:
            event = self._event(arrival)
            if event is not None:
                yield event
            elif arrival.mark is not None:
                self.needs_no_record(arrival.mark)

    def _event(self, arrival: Arrival) -> Event | None:
        try:
            told = orjson.loads(arrival.text)
        except orjson.JSONDecodeError as error:
            return self._dead_letter(arrival, f"not JSON: {error}")
        if is_canary(told):
            self.canaries += 1
            return None
        edit = edit_event(told)
        if isinstance(edit, str):
            return self._dead_letter(arrival, edit)
        event_id = edit["meta"]["id"]
        if self.recent is not None and not self.recent.is_new(event_id):
            self.repeated += 1
            return None
        try:
            value = self.encode(edit)
        except (TypeError, ValueError, OverflowError) as error:
            return self._dead_letter(arrival, f"not by the schema: {error}")
        time_ms = edit["timestamp"] * MS_PER_SECOND
        self._stream_time_ms = max(self._stream_time_ms, time_ms)
        return Event(
            self._stream_time_ms,
            time_ms,
            f"{edit['wiki']}:{edit['title']}".encode(),
            value,
            facts=((event_id, time_ms),) if edit["type"] == "edit" else (),
            headers=((SOURCE, self.source.encode()), (EVENT_ID, event_id.encode())),
            mark=arrival.mark,
        )

    def _dead_letter(self, arrival: Arrival, reason: str) -> Event:
        """The arrival as a dead letter. Partition and offset are -1, because no record exists yet."""
        origin = {"offset": -1, "partition": -1, "topic": WIKIMEDIA.name}
        key = orjson.dumps({**origin, "sha256": hashlib.sha256(arrival.text).hexdigest()}, option=orjson.OPT_SORT_KEYS)
        now = utc_text(datetime.now(UTC))
        headers = {"topic": WIKIMEDIA.name, "partition": "-1", "offset": "-1", "timestamp": now, "reason": reason, SOURCE: self.source}
        return Event(
            self._stream_time_ms,
            self._stream_time_ms,
            key,
            arrival.text,
            is_usable=False,
            headers=tuple((name, value.encode()) for name, value in headers.items()),
            topic=DEAD_LETTERS.name,
            mark=arrival.mark,
        )
