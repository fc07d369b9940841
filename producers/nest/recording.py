"""Replays recorded Nest documents: one JSON document per line, sent byte for byte.

A line that is not a document is also sent and counts as corrupt; readers have to reject it. Blank lines are skipped.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from contract.json_text import MAX_ID_CHARACTERS, loads, repeats_a_name, time_of
from producers.delivery.events import MS_PER_SECOND, Event, Fact
from producers.delivery.recordings import opened


def replay(path: Path, limit: int | None = None) -> Iterator[Event]:
    """The first `limit` documents of the file (None: all).

    Stream time is the greatest start_time of a last_event or last_connection so far, even if the recording goes back in time.
    """
    return islice(_events(path), limit)


def event_time_ms(value: bytes) -> int | None:
    """The newest start_time or last_connection in a document, ms since 1970. None if it has none, or is not a document."""
    event = _event(value, stream_time_ms=0)
    return event.event_time_ms or None


def _events(path: Path) -> Iterator[Event]:
    stream_time_ms = 0
    with opened(path) as lines:
        for line in lines:
            value = line.rstrip(b"\r\n")
            if value.strip():
                event = _event(value, stream_time_ms)
                stream_time_ms = event.event_time_ms
                yield event


def _event(value: bytes, stream_time_ms: int) -> Event:
    try:
        document = loads(value)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("devices"), dict) or repeats_a_name(value):
        return Event(stream_time_ms, stream_time_ms, None, value, is_usable=False)
    times_ms: list[int] = []
    facts: list[Fact] = []
    structure_id = None
    for name, camera in _objects(document["devices"].get("cameras")).items():
        structure_id = structure_id or camera.get("structure_id")
        last_event = camera.get("last_event")
        if not isinstance(last_event, dict) or (start_ms := _time_ms(last_event.get("start_time"))) is None:
            continue
        times_ms.append(start_ms)
        if last_event.get("has_person") is True:
            device_id = name if camera.get("device_id") is None else str(camera["device_id"])
            facts += [(device_id, start_ms)] if len(device_id) <= MAX_ID_CHARACTERS else []
    for device in (device for kind in ("thermostats", "smoke_co_alarms") for device in _objects(document["devices"].get(kind)).values()):
        structure_id = structure_id or device.get("structure_id")
        if (connected_ms := _time_ms(device.get("last_connection"))) is not None:
            times_ms.append(connected_ms)
    structure_id = structure_id or next(iter(_names(document.get("structures"))), None)
    key = structure_id.encode() if isinstance(structure_id, str) else None
    event_time_ms = max([stream_time_ms, *times_ms])
    return Event(event_time_ms, min([event_time_ms, *times_ms]), key, value, tuple(facts))


def _objects(value: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - any JSON value
    return {name: part for name, part in value.items() if isinstance(part, dict)} if isinstance(value, dict) else {}


def _names(value: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    return list(value) if isinstance(value, dict) else []


def _time_ms(text: object) -> int | None:
    """The time in ms since 1970. None if it is no time."""
    moment = time_of(text)
    return None if moment is None else round(moment.timestamp() * MS_PER_SECOND)
