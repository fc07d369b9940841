"""The changing state of a home's cameras, and the documents that report it and the home's other devices."""

import random
from typing import NamedTuple

import orjson

from producers.delivery.events import MS_PER_SECOND, Event, Fact
from producers.nest.devices import HomeDevices
from producers.nest.documents import Part, camera_part, event_urls, home_document, iso_utc, iso_utc_brief
from producers.nest.homes import Camera, Home

URLS_EXPIRE_MS = 10 * 24 * 3600 * MS_PER_SECOND
_CALM_MS = 2000
"""Pause between a camera's events."""
_HAS_NO_MILLISECONDS, _HAS_SOUND, _HAS_MOTION = 0.1, 0.4, 0.8


class _Report(NamedTuple):
    """One camera's part of a document, the start of its event (None: no event), and its fact."""

    part: Part
    start_ms: int | None
    fact: Fact | None


class CameraState:
    """A camera's current state. Its reports are rebuilt only when the state changes."""

    def __init__(self, home: "HomeState", camera: Camera, since_ms: int) -> None:
        self.home, self.camera = home, camera
        self._zones: list[list[str]] = [[], *([str(number)] for number in range(1, len(camera.activity_zones or ()) + 1))]
        self.start_ms = self.end_ms = -1
        self.is_in_event = False
        self.flaps_left = 0
        self._seen: Part = {}
        self._zone, self._write = self._zones[0], iso_utc
        self.turn(since_ms, online=True)

    def is_free(self, now_ms: int) -> bool:
        """Whether an event may begin."""
        return self.is_online and not self.is_in_event and not self.flaps_left and now_ms >= self.end_ms + _CALM_MS

    def begin(self, now_ms: int, length_ms: int, rng: random.Random, person_chance: float) -> None:
        is_brief = rng.random() < _HAS_NO_MILLISECONDS
        self.start_ms = now_ms - now_ms % MS_PER_SECOND if is_brief else now_ms
        self.end_ms, self.is_in_event = now_ms + length_ms, True
        has_person = rng.random() < person_chance
        has_sound, has_motion = rng.random() < _HAS_SOUND, has_person or rng.random() < _HAS_MOTION
        self._write = iso_utc_brief if is_brief else iso_utc
        self._zone = self._zones[int(rng.random() * len(self._zones))] if has_motion else []
        self._seen = {"has_sound": has_sound, "has_motion": has_motion, "has_person": has_person}
        self._show_event()

    def end(self) -> None:
        self.is_in_event = False
        self._show_event()

    def turn(self, now_ms: int, *, online: bool) -> None:
        """Takes the camera offline, or back online."""
        self.is_online = online
        self.silent = _Report(camera_part(self.home.home, self.camera, is_online=online, online_changed_ms=now_ms), None, None)
        self._show_event()

    def _show_event(self) -> None:
        """Rebuilds the report with the last event, if there was one."""
        if self._seen:
            last_event = {
                **self._seen,
                "start_time": self._write(self.start_ms),
                **({} if self.is_in_event else {"end_time": self._write(self.end_ms)}),
                "urls_expire_time": self._write(self.start_ms + URLS_EXPIRE_MS),
                **event_urls(self.camera, self.start_ms),
                "activity_zone_ids": self._zone,
            }
            fact = (self.camera.device_id, self.start_ms) if self._seen["has_person"] else None
            self.eventful = _Report({**self.silent.part, "last_event": last_event}, self.start_ms, fact)


class HomeState:
    """A home's current state. Builds its documents from its cameras' reports."""

    def __init__(self, home: Home, since_ms: int, seed: int) -> None:
        self.home = home
        self.is_dark = False
        self.key = home.structure_id.encode()
        self.cameras = [CameraState(self, camera, since_ms) for camera in home.cameras]
        self._devices = HomeDevices(home, seed)

    def document(self, number: int, now_ms: int, memory_ms: int) -> Event:
        """The document at `now_ms`, with the sequence number `number`. Omits events that began more than `memory_ms` ago."""
        remembered_ms = now_ms - memory_ms
        reports = [camera.eventful if camera.start_ms >= remembered_ms else camera.silent for camera in self.cameras]
        cameras = {report.part["device_id"]: report.part for report in reports}
        oldest_ms = min([now_ms, *[report.start_ms for report in reports if report.start_ms is not None]])
        facts = tuple([report.fact for report in reports if report.fact is not None])
        return Event(now_ms, oldest_ms, self.key, self._value(number, now_ms, cameras), facts)

    def document_without_cameras(self, number: int, now_ms: int) -> Event:
        return Event(now_ms, now_ms, self.key, self._value(number, now_ms, None))

    def _value(self, number: int, now_ms: int, cameras: Part | None) -> bytes:
        return orjson.dumps(home_document(self.home, number, *self._devices.report(now_ms), cameras))
