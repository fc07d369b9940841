"""Weather stations: simulated readings."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice

import orjson
from contract.domains.weather import READINGS

from infrastructure import durations
from infrastructure.settings import Settings
from producers.delivery import options
from producers.delivery.events import Event, Source
from producers.delivery.faults import Faults, damaged_by, empty, invalid_utf8, truncated

STATIONS = [f"station-{number:02}" for number in range(12)]


def readings(start: datetime, step: timedelta, seed: int) -> Iterator[Event]:
    """An endless stream of readings, `step` apart, in order of time. The same start, step and seed give the same readings."""
    chance = random.Random(seed)
    for number in count():
        time, station = start + number * step, chance.choice(STATIONS)
        time_ms = int(time.timestamp() * 1000)
        value = {"station": station, "time": time.isoformat(timespec="milliseconds"), "celsius": round(chance.gauss(12, 6), 1)}
        yield Event(time_ms, time_ms, station.encode(), orjson.dumps(value), facts=((station, time_ms),))


def produce(
    *,
    rate: options.Rate = 20.0,
    limit: options.Limit = None,
    seed: options.Seed = 0,
    late: options.Late = 0.0,
    too_late: options.TooLate = 0.0,
    duplicates: options.Duplicates = 0.0,
    corrupt: options.Corrupt = 0.0,
    json: options.AsJson = False,
) -> None:
    """Weather stations: simulated readings, one a minute of event time."""
    from producers.delivery.run import Run, deliver

    settings = Settings.from_environment()
    faults = Faults(late, too_late, duplicates, corrupt, durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK"), seed)
    damage = damaged_by(truncated, invalid_utf8, empty)
    facts = "readings", "distinct readings: station, time"
    run = Run(settings.kafka, READINGS.name, *facts, Source.SIMULATED, faults, damage, rate, limit)
    events = islice(readings(datetime.now(UTC), timedelta(minutes=1), seed), limit)
    deliver(run, events, json=json)
