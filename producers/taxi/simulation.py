"""Simulated green taxi trips with realistic hours, zones, distances, fares and tips, and with odd rows as in real months.

Trips are drawn in blocks of columns, directly in order of drop-off: trips end at the hour's rate, and each began its duration earlier.
Everything is a function of the simulation; its limit only sets where it ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from producers.delivery.events import MS_PER_SECOND
from producers.taxi.city import City
from producers.taxi.odd_rows import Columns, make_odd, unset_clocks
from producers.taxi.trips import DROPOFF, PICKUP, TRIP, TRIPS_PER_BATCH

TRIPS_PER_DAY = 1850

# Relative traffic by hour of the day, from 0 to 23, and by day of the week, from Monday.
_HOURS = (1.1, 0.8, 0.5, 0.5, 0.4, 0.3, 0.9, 2.1, 2.7, 3.0, 3.0, 3.1, 3.3, 3.3, 3.9, 4.0, 4.5, 4.9, 4.2, 3.1, 2.6, 2.1, 1.9, 1.4)
_DAYS = (0.98, 1.03, 1.11, 1.12, 1.06, 0.90, 0.80)
_WEEK_SECONDS = 7 * 86_400
_MONDAY_SECONDS = 4 * 86_400  # 1970-01-05

_PAYMENTS, _PAYMENT_SHARES = (1, 2, 3, 4), (0.670, 0.318, 0.009, 0.003)
_CARD = 1
_PASSENGERS, _PASSENGER_SHARES = (1, 2, 3, 4, 5, 6), (0.84, 0.10, 0.01, 0.005, 0.025, 0.02)
_TIP_PERCENTS, _TIP_SHARES = (0, 10, 15, 20, 25, 30), (0.12, 0.05, 0.13, 0.40, 0.20, 0.10)
_NEGOTIATED_SHARE, _STORED_SHARE, _TOLL_SHARE, _FIRST_VENDOR_SHARE = 0.04, 0.002, 0.027, 0.12
_FLAG_FALL_CENTS, _UNIT_CENTS, _UNITS_PER_MILE, _UNITS_PER_MINUTE = 300, 70, 5, 0.5
_TOLL_CENTS, _CONGESTION_CENTS, _MTA_CENTS, _IMPROVEMENT_CENTS = 694, 275, 50, 100
_RUSH_CENTS, _NIGHT_CENTS = 250, 100


@dataclass(frozen=True)
class Simulation:
    """All inputs of the simulated trips.

    start: approximate end of the first trip; wall-clock time of New York, taken as UTC. limit: number of trips, None: endless.
    odd_fraction: share of odd trips, 0 to 1, as in real files (see `producers.taxi.odd_rows`). has_unset_clocks: whether the first trips
    are from 2008, if there are odd ones; False when resuming a simulation, because those trips would be far behind it.
    """

    start: datetime
    seed: int = 0
    limit: int | None = None
    odd_fraction: float = 0.0
    has_unset_clocks: bool = True


def simulated_trips(simulation: Simulation) -> Iterator[pa.RecordBatch]:
    """The trips of `simulation` as batches of TRIP, ordered by drop-off. Endless without a limit."""
    rng = np.random.default_rng(simulation.seed)
    city, clock = City(), _Clock(simulation.start)
    left = simulation.limit
    clocks_to_unset = simulation.has_unset_clocks and simulation.odd_fraction > 0
    while left is None or left > 0:
        trips = _block(rng, city, clock)
        nulls = make_odd(trips, rng, simulation.odd_fraction)
        if clocks_to_unset:
            unset_clocks(trips)
            clocks_to_unset = False
        batch = pa.record_batch([pa.array(trips[field.name], field.type, mask=nulls.get(field.name)) for field in TRIP], TRIP)
        yield batch if left is None else batch.slice(0, left)
        left = None if left is None else left - len(batch)


class _Clock:
    """The end times of trips: a Poisson process whose rate follows the hours of the week."""

    def __init__(self, start: datetime) -> None:
        rates = np.outer(_DAYS, _HOURS).ravel()
        self._expected = np.concatenate([[0.0], np.cumsum(rates / rates.sum() * 7 * TRIPS_PER_DAY)])  # by the end of each hour of a week
        self._edges = np.arange(len(self._expected)) * 3600.0
        weeks, seconds = divmod(start.timestamp() - _MONDAY_SECONDS, _WEEK_SECONDS)
        self._passed = weeks * self._expected[-1] + np.interp(seconds, self._edges, self._expected)

    def next_seconds(self, gaps: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The next times, whole seconds since 1970. gaps: exponentially distributed with mean 1."""
        passed = self._passed + np.cumsum(gaps)
        self._passed = passed[-1]
        weeks, rest = np.divmod(passed, self._expected[-1])
        seconds = _MONDAY_SECONDS + weeks * _WEEK_SECONDS + np.interp(rest, self._expected, self._edges)
        return seconds.astype(np.int64)


def _block(rng: np.random.Generator, city: City, clock: _Clock) -> Columns:
    """The columns of the next TRIPS_PER_BATCH trips, none of them odd."""
    size = TRIPS_PER_BATCH
    dropoff = clock.next_seconds(rng.exponential(size=size))
    pickup_zone, dropoff_zone = city.journeys(rng.random(size), rng.random(size))
    hour = dropoff // 3600 % 24
    miles = np.clip(rng.lognormal(0.55, 0.62, size) * np.where(city.crosses(pickup_zone, dropoff_zone), 2.6, 1.0), 0.1, 60).round(2)
    miles_an_hour = rng.lognormal(2.3, 0.3, size) * np.where(hour < 6, 1.4, 1.0)  # noqa: PLR2004 - the streets are empty until six
    seconds = np.clip(miles / miles_an_hour * 3600, 60, 3 * 3600).astype(np.int64)
    negotiated = rng.random(size) < _NEGOTIATED_SHARE
    payment = rng.choice(_PAYMENTS, size, p=_PAYMENT_SHARES)
    trips: Columns = {
        "VendorID": np.where(rng.random(size) < _FIRST_VENDOR_SHARE, 1, 2),
        PICKUP: (dropoff - seconds) * MS_PER_SECOND,
        DROPOFF: dropoff * MS_PER_SECOND,
        "store_and_fwd_flag": np.where(rng.random(size) < _STORED_SHARE, "Y", "N"),
        "RatecodeID": np.where(negotiated, 5, 1),
        "PULocationID": city.ids[pickup_zone],
        "DOLocationID": city.ids[dropoff_zone],
        "passenger_count": rng.choice(_PASSENGERS, size, p=_PASSENGER_SHARES),
        "trip_distance": miles,
        "ehail_fee": np.full(size, None),
        "payment_type": payment,
        "trip_type": np.where(negotiated, 2, 1),
    }
    fare = _FLAG_FALL_CENTS + _UNIT_CENTS * np.round(_UNITS_PER_MILE * miles + _UNITS_PER_MINUTE * seconds / 60)
    tip_percent = np.where(payment == _CARD, rng.choice(_TIP_PERCENTS, size, p=_TIP_SHARES), 0)
    cents = {
        "fare_amount": fare,
        "extra": np.where(negotiated, 0, _extra_cents(dropoff)),
        "mta_tax": np.where(negotiated, 0, _MTA_CENTS),
        "tip_amount": np.round(fare * tip_percent / 100),
        "tolls_amount": np.where(rng.random(size) < _TOLL_SHARE, _TOLL_CENTS, 0),
        "improvement_surcharge": np.full(size, _IMPROVEMENT_CENTS),
        "congestion_surcharge": np.where(city.is_congested[dropoff_zone], _CONGESTION_CENTS, 0),
    }
    cents["total_amount"] = np.sum(list(cents.values()), axis=0)
    return trips | {name: amount / 100 for name, amount in cents.items()}


def _extra_cents(seconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The surcharge by hour: weekdays from 16 to 20, and every night from 20 to 6."""
    hour, day = seconds // 3600 % 24, (seconds - _MONDAY_SECONDS) // 86_400 % 7
    is_rush = (hour >= 16) & (hour < 20) & (day < 5)  # noqa: PLR2004 - the hours of the tariff
    is_night = (hour >= 20) | (hour < 6)  # noqa: PLR2004
    return np.where(is_rush, _RUSH_CENTS, np.where(is_night, _NIGHT_CENTS, 0))
