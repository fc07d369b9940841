"""Adds the odd rows of real files to simulated trips.

lacks codes   six columns are null (trips recorded in another way; real files have them at the end)
stands still  no distance, in little or no time
refund        every amount is negative
all day       the meter was left on: 24 hours, less up to a minute
unknown zone  264 (unknown), 265 (outside the city), or a number that is not in the zone table
2008          a clock that was never set; the first trips of a simulation
"""

from datetime import UTC, datetime
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from producers.delivery.events import MS_PER_SECOND
from producers.taxi.trips import DROPOFF, PICKUP

CODES = ("store_and_fwd_flag", "RatecodeID", "passenger_count", "payment_type", "trip_type", "congestion_surcharge")
AMOUNTS = ("fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge", "total_amount", "congestion_surcharge")
ZONE_IN_NO_TABLE = 999
UNKNOWN_ZONES = (264, 265, ZONE_IN_NO_TABLE)
UNSET_CLOCK_MS = int(datetime(2008, 12, 31, 23, 2, 24, tzinfo=UTC).timestamp()) * MS_PER_SECOND
UNSET_CLOCKS = 2


class Oddity(IntEnum):
    """The kinds of odd trips."""

    LACKS_CODES = 0
    STANDS_STILL = 1
    REFUND = 2
    ALL_DAY = 3
    UNKNOWN_ZONE = 4


_SHARES = (0.55, 0.27, 0.06, 0.04, 0.08)

Columns = dict[str, npt.NDArray]  # type: ignore[type-arg]  # each column has its own type


def make_odd(trips: Columns, rng: np.random.Generator, fraction: float) -> dict[str, npt.NDArray[np.bool_]]:
    """Makes a `fraction` of the trips odd, in place. Returns a null mask by column."""
    size = len(trips[DROPOFF])
    is_odd, oddity = rng.random(size) < fraction, rng.choice(list(Oddity), size, p=_SHARES)
    seconds = rng.integers(0, 60, size)
    zones = rng.choice(UNKNOWN_ZONES, (2, size))

    def having(wanted: Oddity) -> npt.NDArray[np.bool_]:
        return is_odd & (oddity == wanted)

    still, refund, all_day, unknown = (having(oddity) for oddity in list(Oddity)[1:])
    trips["trip_distance"][still] = 0
    trips[PICKUP][still] = trips[DROPOFF][still] - seconds[still] // 10 * MS_PER_SECOND
    trips[PICKUP][all_day] = trips[DROPOFF][all_day] - (86_400 - seconds[all_day]) * MS_PER_SECOND
    for amount in AMOUNTS:
        trips[amount][refund] *= -1
    trips["PULocationID"][unknown], trips["DOLocationID"][unknown] = zones[:, unknown]
    return dict.fromkeys(CODES, having(Oddity.LACKS_CODES))


def unset_clocks(trips: Columns) -> None:
    """Moves the first trips to 2008, in place. In order of drop-off they come before all others."""
    for number in range(min(UNSET_CLOCKS, len(trips[DROPOFF]))):
        trips[PICKUP][number] = UNSET_CLOCK_MS
        trips[DROPOFF][number] = UNSET_CLOCK_MS + 6 * MS_PER_SECOND
