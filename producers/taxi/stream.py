"""Trips of New York's green taxis in order of drop-off, simulated or replayed from TLC's Parquet files."""

from collections.abc import Callable, Iterator
from itertools import islice

import orjson

from infrastructure.storage.paths import StoragePath
from producers.delivery.events import Event
from producers.delivery.faults import NO_JSON_TEXT, damaged_by
from producers.delivery.summary import Summary
from producers.taxi.files import read_trips
from producers.taxi.simulation import Simulation, simulated_trips
from producers.taxi.trips import DROPOFF, as_events


def simulate(simulation: Simulation) -> Iterator[Event]:
    """The trips of `simulation`, ordered by drop-off. Keys are pick-up zones."""
    return as_events(simulated_trips(simulation))


def replay(path: StoragePath, notice: Callable[[str], None], limit: int | None = None) -> Iterator[Event]:
    """The first `limit` trips of TLC's Parquet file (None: all), ordered by drop-off.

    notice: gets one line if the file has columns that are dropped. Raises StreamgaugeError immediately when the file cannot be used.
    """
    return islice(as_events(read_trips(path, notice)), limit)


def event_time_ms(value: bytes) -> int | None:
    """The drop-off time in a record, ms since 1970. None if it has none, or is not a trip."""
    try:
        trip = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    time_ms = trip.get(DROPOFF) if isinstance(trip, dict) else None
    return time_ms if type(time_ms) is int else None


def trip_counts(summary: Summary) -> Summary:
    """Each usable trip as a fact. Trips have no id; no two are equal in every column."""
    counted_by = {"trips": "distinct_events", "trips_too_late": "too_late"}
    return {name: (summary[count][0], summary[name][1]) for name, count in counted_by.items()}


def _comma_separated(value: bytes) -> bytes:
    return b",".join(str(field).encode() for field in orjson.loads(value).values())


def _without_dropoff_time(value: bytes) -> bytes:
    return orjson.dumps({**orjson.loads(value), DROPOFF: None})


def _unbounded_dropoff_time(value: bytes) -> bytes:
    """With a number that takes a reader minutes to write out."""
    return orjson.dumps({**orjson.loads(value), DROPOFF: orjson.Fragment("1e99999999")})


DAMAGES = (*NO_JSON_TEXT, _comma_separated, _without_dropoff_time, _unbounded_dropoff_time)
corrupt = damaged_by(*DAMAGES)
"""Makes a corrupt copy of a trip, which is never usable."""
