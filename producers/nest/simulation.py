"""Simulates Nest cameras that see people.

A document reports one home with all its cameras. It is sent because something happened at one of them: an event began, continues (without
end_time), or ended; the camera went offline or came back; or it is the regular report. The same event is therefore reported several times.
It is one *sighting* when it shows a person: the fact (device_id, start_time) with has_person.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

import orjson

from contract.errors import StreamgaugeError
from producers.delivery.damage import damaged_by, empty, invalid_utf8, truncated
from producers.delivery.events import MS_PER_SECOND, Event
from producers.nest.homes import homes
from producers.nest.reports import CameraState, HomeState

MOST_CAMERAS = 100_000
MOST_SECONDS_BETWEEN_DOCUMENTS = 86_400
FIRST_START, LAST_START = datetime(1971, 1, 1, tzinfo=UTC), datetime(2500, 1, 1, tzinfo=UTC)
MEMORY_SECONDS = 300.0
"""A camera reports its last event for this long after it began. An older event in a new document would be beyond a watermark."""

# Probability that a free camera begins an event, and that the event shows a person, by hour of the day (UTC).
ACTIVITY = (
    0.12,
    0.08,
    0.06,
    0.05,
    0.06,
    0.10,
    0.25,
    0.45,
    0.55,
    0.40,
    0.32,
    0.34,
    0.42,
    0.38,
    0.34,
    0.40,
    0.52,
    0.62,
    0.66,
    0.60,
    0.50,
    0.40,
    0.28,
    0.18,
)
PEOPLE = (0.20, 0.12, 0.08, 0.06, 0.08, 0.20, 0.40, 0.62, 0.66, 0.50, 0.44, 0.48, 0.58, 0.52, 0.46, 0.54, 0.66, 0.74, 0.76, 0.70, 0.62, 0.52, 0.40, 0.28)  # fmt: skip

_GOES_OFFLINE, _LACKS_CAMERAS = 0.002, 0.003
_OFFLINE_MS = (5 * 60_000, 60 * 60_000)
_SHORTEST_EVENT_MS, _LONGEST_EVENT_MS = 2000, 120_000


@dataclass(frozen=True)
class Simulation:
    """All inputs of the simulated documents: the same simulation gives the same bytes in every process.

    start: time of the first event, UTC. seconds_between: event time between documents. limit: number of documents, None: endless.
    memory_seconds: how long a camera reports its last event. Raises StreamgaugeError when a value is out of range.
    """

    start: datetime
    seed: int = 0
    cameras: int = 500
    seconds_between: float = 0.6
    limit: int | None = None
    memory_seconds: float = MEMORY_SECONDS

    def __post_init__(self) -> None:
        if not 1 <= self.cameras <= MOST_CAMERAS:
            msg = f"--cameras is {self.cameras}; expected 1 to {MOST_CAMERAS}"
            raise StreamgaugeError(msg)
        if not 0 < self.seconds_between <= MOST_SECONDS_BETWEEN_DOCUMENTS:
            msg = f"documents are {self.seconds_between:g} s of event time apart (--speed-up divided by --rate); expected above 0, at most a day"
            raise StreamgaugeError(msg)
        if self.limit is not None and self.limit < 0:
            msg = f"--limit is {self.limit}; expected a number of documents, 0 or more"
            raise StreamgaugeError(msg)
        if not FIRST_START <= self.start <= LAST_START:
            msg = f"--start is {self.start.isoformat()}; expected a time from {FIRST_START.year} to {LAST_START.year}"
            raise StreamgaugeError(msg)


def simulate(simulation: Simulation) -> Iterator[Event]:
    """The documents of `simulation` in order of event time. Keys are structure ids; facts are sightings."""
    neighbourhood = _Neighbourhood(simulation)
    start_ms, step_ms = round(simulation.start.timestamp() * MS_PER_SECOND), simulation.seconds_between * MS_PER_SECOND
    for number in count() if simulation.limit is None else range(simulation.limit):
        yield neighbourhood.next_document(number, start_ms + int(number * step_ms))


class _Neighbourhood:
    """All homes, and the queue of due reports: (time, entry number, camera)."""

    def __init__(self, simulation: Simulation) -> None:
        self._rng = random.Random(simulation.seed)  # noqa: S311 - a simulation, no secret
        start_ms = round(simulation.start.timestamp() * MS_PER_SECOND)
        self._memory_ms = int(simulation.memory_seconds * MS_PER_SECOND)
        self._longest_ms = min(_LONGEST_EVENT_MS, self._memory_ms // 2)
        states = [HomeState(home, start_ms - 1 - int(self._rng.random() * 10**9)) for home in homes(simulation.cameras)]
        self._cameras = [camera for home in states for camera in home.cameras]
        self._agenda: list[tuple[int, int, CameraState]] = []
        self._entries = count()

    def next_document(self, number: int, now_ms: int) -> Event:
        """The document at `now_ms`: of the next due camera, otherwise of a random one."""
        if self._agenda and self._agenda[0][0] <= now_ms:
            camera = heapq.heappop(self._agenda)[2]
            self._go_on(camera, now_ms)
        else:
            camera = self._cameras[int(self._rng.random() * len(self._cameras))]
            draw = self._rng.random()
            hour = now_ms // 3_600_000 % 24
            if draw < ACTIVITY[hour] and camera.is_free(now_ms):
                self._begin(camera, now_ms, PEOPLE[hour])
            elif draw > 1 - _GOES_OFFLINE and camera.is_free(now_ms):
                camera.turn(now_ms, online=False)
                self._note(camera, now_ms + self._rng.randrange(*_OFFLINE_MS))
            elif draw > 1 - _GOES_OFFLINE - _LACKS_CAMERAS:
                return camera.home.document_without_cameras(number, now_ms)
        return camera.home.document(number, now_ms, self._memory_ms)

    def _begin(self, camera: CameraState, now_ms: int, person_chance: float) -> None:
        length_ms = _SHORTEST_EVENT_MS + int(self._rng.random() ** 2 * self._longest_ms)
        camera.begin(now_ms, length_ms, self._rng, person_chance)
        self._note(camera, now_ms + length_ms // 2)

    def _go_on(self, camera: CameraState, now_ms: int) -> None:
        if not camera.is_online:
            camera.turn(now_ms, online=True)
        elif now_ms < camera.end_ms:
            self._note(camera, camera.end_ms)
        else:
            camera.end()

    def _note(self, camera: CameraState, due_ms: int) -> None:
        heapq.heappush(self._agenda, (due_ms, next(self._entries), camera))


def _not_json(value: bytes) -> bytes:
    return b"<html>502 Bad Gateway, %d bytes</html>" % len(value)


def _without_devices(value: bytes) -> bytes:
    document = orjson.loads(value)
    return orjson.dumps({name: part for name, part in document.items() if name != "devices"})


DAMAGES = (truncated, invalid_utf8, _not_json, _without_devices, empty)
corrupt = damaged_by(*DAMAGES)
"""Makes a corrupt copy of a document, which is never usable."""
