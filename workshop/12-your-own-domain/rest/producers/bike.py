"""Bikes: simulated trips."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice

import orjson
from contract.domains.bike import TRIPS

from infrastructure import durations
from infrastructure.output.terminal import err
from infrastructure.settings import Settings
from producers.delivery import options
from producers.delivery.events import Event, Source
from producers.delivery.faults import Faults, damaged_by, truncated

STATIONS = ("Harbour", "Station", "Market", "Museum", "Park")
BIKES = 40


def trips(start: datetime, step: timedelta, seed: int) -> Iterator[Event]:
    """An endless stream of trips that end `step` apart, in order of time. The same start, step and seed give the same trips."""
    chance = random.Random(seed)
    for number in count(1):
        ended_at, bike = start + number * step, f"b-{chance.randint(1, BIKES)}"
        ended_ms = int(ended_at.timestamp() * 1000)
        value = {
            "bike": bike,
            "station": chance.choice(STATIONS),
            "ended_at": ended_at.isoformat(timespec="milliseconds"),
            "minutes": None if number % 10 == 0 else chance.randint(2, 45),
        }
        yield Event(ended_ms, ended_ms, bike.encode(), orjson.dumps(value), facts=((bike, ended_ms),))


def produce(  # noqa: PLR0913 - one parameter an option
    *,
    rate: options.Rate = 20.0,
    speed_up: options.SpeedUp = 60.0,
    limit: options.Limit = None,
    seed: options.Seed = 0,
    go_on: options.Continue = False,
    late: options.Late = 0.0,
    too_late: options.TooLate = 0.0,
    duplicates: options.Duplicates = 0.0,
    corrupt: options.Corrupt = 0.0,
    json: options.AsJson = False,
) -> None:
    """Bikes: simulated trips."""
    from producers.delivery.resume import newest_event_ms
    from producers.delivery.run import Run, deliver

    settings = Settings.from_environment()
    faults = Faults(late, too_late, duplicates, corrupt, durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK"), seed)
    damage = damaged_by(truncated, _without_a_station, _with_negative_minutes)
    newest_ms = newest_event_ms(settings, TRIPS.name, _ended_ms, err.print) if go_on else None
    start = datetime.now(UTC) if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000, UTC)
    events = islice(trips(start, timedelta(seconds=options.seconds_between(speed_up, rate)), seed), limit)
    facts = "trips", "distinct trips: bike, ended_at"
    deliver(Run(settings.kafka, TRIPS.name, *facts, Source.SIMULATED, faults, damage, rate, limit), events, json=json)


def _without_a_station(value: bytes) -> bytes:
    return orjson.dumps({**orjson.loads(value), "station": None})


def _with_negative_minutes(value: bytes) -> bytes:
    return orjson.dumps({**orjson.loads(value), "minutes": -1})


def _ended_ms(value: bytes) -> int | None:
    try:
        return int(datetime.fromisoformat(orjson.loads(value)["ended_at"]).timestamp() * 1000)
    except ValueError:  # a damaged record
        return None
