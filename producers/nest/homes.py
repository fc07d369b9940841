"""The simulated homes, and the table of their cameras' locations.

Homes are the same in every run: camera n is always the same device in the same home, so `data/device_locations.csv` fits every seed.
`python -m producers.nest.homes` writes that table.
"""

import csv
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

LOCATED_CAMERAS = 800
"""The table covers the first 800 cameras only."""
DEVICES_EVERY = 10
"""Every tenth home has a thermostat and a smoke alarm."""
UNLOCATED_EVERY = 100
"""Every hundredth of those cameras is missing from the table, like a camera that nobody registered."""
TABLE = Path(__file__).parents[2] / "data" / "device_locations.csv"
COLUMNS = ("device_id", "zip_code", "structure_id")

_SEED = "homes of the simulation"
# Most frequent first: zip code n has about 1/n as many homes as the first.
_ZIP_CODES = (
    "94103", "10025", "60614", "98122", "78704", "02139", "90026", "80205", "97211", "30307", "33139", "55408", "19147",
    "85016", "84105", "27701", "37206", "48104", "53703", "70117", "87106", "15217", "04101", "59801", "99801",
)  # fmt: skip
_HOME_NAMES = ("Home", "Cottage", "Town House", "Cabin", "Flat", "Shop", "Studio", "Farm", "Loft", "Beach House")
_PLACES = ("Front Door", "Garage", "Back Yard", "Living Room", "Hallway", "Driveway", "Kitchen", "Nursery", "Office", "Porch")
_ZONES = ("Path", "Street", "Door", "Lawn", "Gate", "Steps")
_SOFTWARE = ("205-600055", "205-600052", "204-500014", "4.6.5-r14")


@dataclass(frozen=True)
class Camera:
    """A camera's constant properties. `activity_zones` is None for a camera that does not report the field."""

    number: int
    device_id: str
    where_id: str
    where_name: str
    software_version: str
    has_video_history: bool
    is_public: bool
    activity_zones: tuple[str, ...] | None


@dataclass(frozen=True)
class Home:
    """A home: `structure_id`, location, one to three cameras, and perhaps the other devices: a thermostat and a smoke alarm."""

    structure_id: str
    name: str
    zip_code: str
    cameras: tuple[Camera, ...]
    has_devices: bool


def homes(cameras: int) -> Iterator[Home]:
    """The homes of the first `cameras` cameras. The last home may lack some of its cameras."""
    rng = random.Random(_SEED)  # noqa: S311 - a simulation, no secret
    zip_weights = [1 / rank for rank in range(1, len(_ZIP_CODES) + 1)]
    first = number = 0
    while first < cameras:
        size = rng.choices((1, 2, 3), (90, 8, 2))[0]
        places = rng.sample(_PLACES, size)
        made = tuple(_camera(first + index, place, rng) for index, place in enumerate(places))
        zip_code = rng.choices(_ZIP_CODES, zip_weights)[0]
        structure_id, name = f"structure-{_token('structure', number)}", rng.choice(_HOME_NAMES)
        yield Home(structure_id, name, zip_code, made[: cameras - first], has_devices=number % DEVICES_EVERY == 0)
        first, number = first + size, number + 1


def _camera(number: int, place: str, rng: random.Random) -> Camera:
    zones = tuple(rng.sample(_ZONES, rng.choice((0, 1, 1, 2))))
    return Camera(
        number=number,
        device_id=f"camera-{_token('camera', number)}",
        where_id=f"where-{_token('where', _PLACES.index(place))[:12]}",
        where_name=place,
        software_version=rng.choice(_SOFTWARE),
        has_video_history=rng.random() < 0.7,  # noqa: PLR2004 - most pay for it
        is_public=rng.random() < 0.05,  # noqa: PLR2004 - few are shared
        activity_zones=zones if rng.random() < 0.95 else None,  # noqa: PLR2004 - some documents lack the field
    )


def _token(kind: str, number: int) -> str:
    return hashlib.sha256(f"{kind} {number}".encode()).hexdigest()[:16]


def device_locations() -> Iterator[tuple[str, str, str]]:
    """The rows of the table: device_id, zip_code, structure_id; unique by device_id."""
    for home in homes(LOCATED_CAMERAS):
        for camera in home.cameras:
            if (camera.number + 1) % UNLOCATED_EVERY:
                yield camera.device_id, home.zip_code, home.structure_id


def write_table(file: TextIO) -> None:
    """Writes the table as CSV with a header."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(device_locations())


if __name__ == "__main__":
    with TABLE.open("w", newline="") as table:
        write_table(table)
