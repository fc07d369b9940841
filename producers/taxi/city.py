"""Start and end of simulated trips: TLC's zones, and their popularity among green taxis.

Green taxis pick up outside central Manhattan (service zone "Boro Zone") and drop off anywhere.
"""

import csv

import numpy as np
import numpy.typing as npt

from infrastructure.storage.data_files import data_file

ZONE_TABLE = "taxi_zone_lookup.csv"

# Percent of trips that begin and end in the most popular zones.
_PICKUPS = {
    74: 21.5, 75: 13.7, 95: 5.4, 82: 5.1, 41: 4.8, 166: 4.8, 43: 4.7, 97: 3.8, 65: 3.3, 7: 2.7, 130: 2.3, 244: 2.3, 42: 2.2, 129: 2.1,
    260: 1.7, 134: 1.2, 66: 1.1, 92: 1.0, 33: 1.0, 83: 0.9, 116: 0.8, 223: 0.8, 193: 0.7, 25: 0.7, 24: 0.6, 196: 0.5, 181: 0.5, 152: 0.5,
}  # fmt: skip
_DROPOFFS = {
    75: 5.4, 74: 5.2, 236: 4.6, 41: 3.5, 166: 3.3, 238: 3.3, 42: 3.0, 138: 2.9, 263: 2.4, 95: 2.3, 239: 2.3, 151: 2.1, 129: 2.0, 43: 1.6,
    237: 1.6, 7: 1.5, 82: 1.5, 262: 1.4, 244: 1.3, 141: 1.2, 142: 1.2, 116: 1.2, 140: 1.1, 181: 1.1, 152: 1.0, 97: 1.0, 49: 1.0, 24: 1.0,
}  # fmt: skip
_OTHER_PICKUP, _OTHER_DROPOFF = 0.05, 0.15
_STAYS_IN_BOROUGH = 0.85

Places = npt.NDArray[np.int64]
"""Zones as indexes into `City.ids`."""


class City:
    """The zones that are real places. ids: LocationIDs. is_congested: whether a trip that ends there pays the congestion surcharge."""

    def __init__(self) -> None:
        with data_file(ZONE_TABLE).open(newline="") as file:
            zones = [zone for zone in csv.DictReader(file) if zone["service_zone"] != "N/A"]
        self.ids = np.array([int(zone["LocationID"]) for zone in zones])
        self.is_congested = np.array([zone["service_zone"] == "Yellow Zone" for zone in zones])
        self._borough = np.array([zone["Borough"] for zone in zones])
        hails = np.array([_PICKUPS.get(int(zone["LocationID"]), _OTHER_PICKUP * (zone["service_zone"] == "Boro Zone")) for zone in zones])
        self._pickups = np.cumsum(hails) / hails.sum()
        popular = np.array([_DROPOFFS.get(int(zone["LocationID"]), _OTHER_DROPOFF) for zone in zones])
        near = popular * (self._borough[:, None] == self._borough[None, :])
        near /= near.sum(axis=1, keepdims=True)
        self._dropoffs = np.cumsum(_STAYS_IN_BOROUGH * near + (1 - _STAYS_IN_BOROUGH) * popular / popular.sum(), axis=1)

    def journeys(self, begin: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> tuple[Places, Places]:
        """Start and end zones of trips, from random draws between 0 and 1."""
        last = len(self.ids) - 1  # a cumulative sum may end slightly below 1
        pickups = np.minimum(np.searchsorted(self._pickups, begin, side="right"), last)
        dropoffs = np.minimum((self._dropoffs[pickups] <= end[:, None]).sum(axis=1), last)
        return pickups, dropoffs

    def crosses(self, pickups: Places, dropoffs: Places) -> npt.NDArray[np.bool_]:
        """Whether trips end in another borough than they began in."""
        crosses: npt.NDArray[np.bool_] = self._borough[pickups] != self._borough[dropoffs]
        return crosses
