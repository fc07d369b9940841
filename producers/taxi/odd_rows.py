"""Adds the odd rows of real files to simulated trips.

lacks codes   six columns are null (trips recorded in another way; real files have them at the end)
stands still  no distance, in little or no time
refund        every amount is negative
all day       the meter was left on: 24 hours, less up to a minute
unknown zone  264 (unknown), 265 (outside the city), or a number that is not in the zone table
2008          a clock that was never set; the first trips of a simulation
"""

from datetime import UTC, datetime

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

_SHARES = (0.55, 0.27, 0.06, 0.04, 0.08)
"""How many of the odd trips are of each kind above, without the last."""

Columns = dict[str, npt.NDArray]  # type: ignore[type-arg]  # each column has its own type


def make_odd(trips: Columns, rng: np.random.Generator, fraction: float) -> dict[str, npt.NDArray[np.bool_]]:
    """Makes a `fraction` of the trips odd, in place. Returns a null mask by column."""
    size = len(trips[DROPOFF])
    is_odd, oddity = rng.random(size) < fraction, rng.choice(len(_SHARES), size, p=_SHARES)
    seconds = rng.integers(0, 60, size)
    zones = rng.choice(UNKNOWN_ZONES, (2, size))
    lacks_codes, still, refund, all_day, unknown = (is_odd & (oddity == kind) for kind in range(len(_SHARES)))
    trips["trip_distance"][still] = 0
    trips[PICKUP][still] = trips[DROPOFF][still] - seconds[still] // 10 * MS_PER_SECOND
    trips[PICKUP][all_day] = trips[DROPOFF][all_day] - (86_400 - seconds[all_day]) * MS_PER_SECOND
    for amount in AMOUNTS:
        trips[amount][refund] *= -1
    trips["PULocationID"][unknown], trips["DOLocationID"][unknown] = zones[:, unknown]
    return dict.fromkeys(CODES, lacks_codes)


def unset_clocks(trips: Columns) -> None:
    """Moves the first trips to 2008, in place. In order of drop-off they come before all others."""
    for number in range(min(UNSET_CLOCKS, len(trips[DROPOFF]))):
        trips[PICKUP][number] = UNSET_CLOCK_MS
        trips[DROPOFF][number] = UNSET_CLOCK_MS + 6 * MS_PER_SECOND
