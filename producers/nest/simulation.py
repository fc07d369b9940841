"""Simulates Nest cameras that see people.

A document reports one home with all its devices. It is sent because something happened at one of them: an event began, continues (without
end_time), or ended; the camera went offline or came back; or it is the regular report. The same event is therefore reported several times.
It is one *sighting* when it shows a person: the fact (device_id, start_time) with has_person.

There are three kinds of outage: a camera says that it is offline, until it is back; a camera flaps, offline and back several times within
minutes; a home goes dark, and nothing is heard of it.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count

import orjson

from producers.delivery.events import MS_PER_SECOND, Event
from producers.delivery.faults import NO_JSON_TEXT, damaged_by
from producers.nest.homes import homes
from producers.nest.reports import CameraState, HomeState

MEMORY_SECONDS = 300.0
"""A camera reports its last event for this long after it began. An older event in a new document would be beyond a watermark."""

# Probability that a free camera begins an event, and that the event shows a person, by hour of the day (UTC).
ACTIVITY = (0.12, 0.08, 0.06, 0.05, 0.06, 0.10, 0.25, 0.45, 0.55, 0.40, 0.32, 0.34, 0.42, 0.38, 0.34, 0.40, 0.52, 0.62, 0.66, 0.60, 0.50, 0.40, 0.28, 0.18)  # fmt: skip
PEOPLE = (0.20, 0.12, 0.08, 0.06, 0.08, 0.20, 0.40, 0.62, 0.66, 0.50, 0.44, 0.48, 0.58, 0.52, 0.46, 0.54, 0.66, 0.74, 0.76, 0.70, 0.62, 0.52, 0.40, 0.28)  # fmt: skip

_GOES_OFFLINE, _GOES_DARK, _FLAPS, _LACKS_CAMERAS = 0.002, 0.001, 0.0005, 0.003
_OFFLINE_MS, _DARK_MS = (5 * 60_000, 60 * 60_000), (15 * 60_000, 60 * 60_000)
_FLAP_COUNT, _FLAP_MS = (4, 8), (20_000, 60_000)
_MAX_DARK = 0.1
"""At most this share of the homes is dark at a time."""
_MIN_EVENT_MS, _MAX_EVENT_MS = 2000, 120_000


@dataclass(frozen=True)
class Simulation:
    """All inputs of the simulated documents: the same simulation gives the same bytes in every process.

    start: time of the first event, UTC. seconds_between: event time between documents. limit: number of documents, None: endless.
    memory_seconds: how long a camera reports its last event.
    """

    start: datetime
    seed: int = 0
    cameras: int = 200
    seconds_between: float = 0.6
    limit: int | None = None
    memory_seconds: float = MEMORY_SECONDS


def simulate(simulation: Simulation) -> Iterator[Event]:
    """The documents of `simulation` in order of event time. Keys are structure ids; facts are sightings."""
    start_ms, step_ms = round(simulation.start.timestamp() * MS_PER_SECOND), simulation.seconds_between * MS_PER_SECOND
    neighbourhood = _Neighbourhood(simulation, start_ms)
    for number in count() if simulation.limit is None else range(simulation.limit):
        yield neighbourhood.next_document(number, start_ms + int(number * step_ms))


class _Neighbourhood:
    """All homes, and the queue of due reports: (time, entry number, camera).

    The homes that report are in order of their last document, and the regular report is that of the first: none is silent for long unless
    it is dark.
    """

    def __init__(self, simulation: Simulation, start_ms: int) -> None:
        self._rng = random.Random(simulation.seed)  # noqa: S311 - a simulation, no secret
        self._memory_ms = int(simulation.memory_seconds * MS_PER_SECOND)
        self._longest_ms = min(_MAX_EVENT_MS, self._memory_ms // 2)
        states = [HomeState(home, start_ms - 1 - int(self._rng.random() * 10**9), simulation.seed) for home in homes(simulation.cameras)]
        self._rng.shuffle(states)
        self._lit = dict.fromkeys(states)
        self._most_dark = int(len(states) * _MAX_DARK)
        self._dark: list[tuple[int, int, HomeState]] = []
        self._agenda: list[tuple[int, int, CameraState]] = []
        self._entries = count()

    def next_document(self, number: int, now_ms: int) -> Event:
        """The document at `now_ms`: of the next due camera, otherwise of the home that has not reported for longest."""
        home = self._due(now_ms)
        if home is None:
            home = next(iter(self._lit))
            camera = home.cameras[int(self._rng.random() * len(home.cameras))]
            draw = self._rng.random()
            if draw > 1 - _LACKS_CAMERAS:
                self._lit[home] = self._lit.pop(home)
                return home.document_without_cameras(number, now_ms)
            if camera.is_free(now_ms):
                self._happen(camera, now_ms, draw)
        self._lit[home] = self._lit.pop(home)
        document = home.document(number, now_ms, self._memory_ms)
        if home.is_dark:
            del self._lit[home]
        return document

    def _due(self, now_ms: int) -> HomeState | None:
        """The home of the next due camera, or one that is dark no longer. What happens in a dark home is not reported."""
        while self._agenda and self._agenda[0][0] <= now_ms:
            camera = heapq.heappop(self._agenda)[2]
            self._go_on(camera, now_ms)
            if not camera.home.is_dark:
                return camera.home
        if self._dark and self._dark[0][0] <= now_ms:
            home = heapq.heappop(self._dark)[2]
            home.is_dark, self._lit[home] = False, None
            return home
        return None

    def _happen(self, camera: CameraState, now_ms: int, draw: float) -> None:
        """What a free camera does: an event, an outage, or nothing."""
        hour, unlikely = now_ms // 3_600_000 % 24, 1 - _LACKS_CAMERAS - draw
        if draw < ACTIVITY[hour]:
            self._begin(camera, now_ms, PEOPLE[hour])
        elif unlikely < _GOES_DARK:
            if len(self._dark) < self._most_dark:
                camera.home.is_dark = True  # after this document
                heapq.heappush(self._dark, (now_ms + self._rng.randrange(*_DARK_MS), next(self._entries), camera.home))
        elif unlikely < _GOES_DARK + _FLAPS:
            camera.flaps_left = self._rng.randrange(*_FLAP_COUNT)
            self._go_offline(camera, now_ms, _FLAP_MS)
        elif unlikely < _GOES_DARK + _FLAPS + _GOES_OFFLINE:
            self._go_offline(camera, now_ms, _OFFLINE_MS)

    def _begin(self, camera: CameraState, now_ms: int, person_chance: float) -> None:
        length_ms = _MIN_EVENT_MS + int(self._rng.random() ** 2 * self._longest_ms)
        camera.begin(now_ms, length_ms, self._rng, person_chance)
        self._note(camera, now_ms + length_ms // 2)

    def _go_offline(self, camera: CameraState, now_ms: int, lasts_ms: tuple[int, int]) -> None:
        camera.turn(now_ms, online=False)
        self._note(camera, now_ms + self._rng.randrange(*lasts_ms))

    def _go_on(self, camera: CameraState, now_ms: int) -> None:
        if not camera.is_online:
            camera.turn(now_ms, online=True)
            if camera.flaps_left:
                self._note(camera, now_ms + self._rng.randrange(*_FLAP_MS))
        elif camera.flaps_left:
            camera.flaps_left -= 1
            self._go_offline(camera, now_ms, _FLAP_MS)
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


DAMAGES = (*NO_JSON_TEXT, _not_json, _without_devices)
corrupt = damaged_by(*DAMAGES)
"""Makes a corrupt copy of a document, which is never usable."""
