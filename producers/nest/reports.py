"""The changing state of a home's cameras, and the documents that report it and the home's other devices."""

import random
from typing import NamedTuple

from producers.delivery.events import MS_PER_SECOND, Event, Fact
from producers.nest.devices import HomeDevices
from producers.nest.documents import (
    JSON_TRUTH,
    URLS_EXPIRE_MS,
    camera_template,
    home_template,
    iso_utc,
    iso_utc_brief,
    last_event_template,
)
from producers.nest.homes import Camera, Home

_CALM_MS = 2000
"""Pause between a camera's events."""
_HAS_NO_MILLISECONDS, _HAS_SOUND, _HAS_MOTION = 0.1, 0.4, 0.8


class _Report(NamedTuple):
    """One camera's part of a document: its JSON, the start of its event (None: no event), and its fact."""

    json: bytes
    start_ms: int | None
    fact: Fact | None


class CameraState:
    """A camera's current state. Its report is cached as bytes and rebuilt only when the state changes."""

    def __init__(self, home: "HomeState", camera: Camera, since_ms: int) -> None:
        self.home, self.camera = home, camera
        self._name = b'"' + camera.device_id.encode() + b'":'
        self._part = camera_template(home.home, camera)
        self._lasting, self._ended = (last_event_template(camera, has_ended=ended) for ended in (False, True))
        self._zones = [b"[]", *(b'["%d"]' % number for number in range(1, len(camera.activity_zones or ()) + 1))]
        self.is_online, self.online_changed_ms = True, since_ms
        self.start_ms = self.end_ms = -1
        self.is_in_event = False
        self.has_person = False
        self.flaps_left = 0
        self._what: tuple[bytes, ...] = ()
        self._zone, self._write = b"[]", iso_utc
        self.show()

    def is_free(self, now_ms: int) -> bool:
        """Whether an event may begin."""
        return self.is_online and not self.is_in_event and not self.flaps_left and now_ms >= self.end_ms + _CALM_MS

    def begin(self, now_ms: int, length_ms: int, rng: random.Random, person_chance: float) -> None:
        """Begins an event that lasts `length_ms`."""
        is_brief = rng.random() < _HAS_NO_MILLISECONDS
        self.start_ms = now_ms - now_ms % MS_PER_SECOND if is_brief else now_ms
        self.end_ms, self.is_in_event = now_ms + length_ms, True
        self.has_person = rng.random() < person_chance
        has_sound, has_motion = rng.random() < _HAS_SOUND, self.has_person or rng.random() < _HAS_MOTION
        self._write = iso_utc_brief if is_brief else iso_utc
        self._zone = self._zones[int(rng.random() * len(self._zones))] if has_motion else b"[]"
        self._what = JSON_TRUTH[has_sound], JSON_TRUTH[has_motion], JSON_TRUTH[self.has_person], self._write(self.start_ms)
        self.show()

    def end(self) -> None:
        """Ends the event at `end_ms`."""
        self.is_in_event = False
        self.show()

    def turn(self, now_ms: int, *, online: bool) -> None:
        """Takes the camera offline, or back online."""
        self.is_online, self.online_changed_ms = online, now_ms
        self.show()

    def show(self) -> None:
        """Rebuilds the camera's two reports: with and without the last event."""
        online = JSON_TRUTH[self.is_online]
        part = self._name + self._part.fill(online, online, iso_utc(self.online_changed_ms))
        self.silent = _Report(part, None, None)
        if self._what:
            number = b"%d" % self.start_ms
            tail = self._write(self.start_ms + URLS_EXPIRE_MS), number, number, number, number, self._zone
            event = (
                self._lasting.fill(*self._what, *tail)
                if self.is_in_event
                else self._ended.fill(*self._what, self._write(self.end_ms), *tail)
            )
            fact = (self.camera.device_id, self.start_ms) if self.has_person else None
            self.eventful = _Report(part[:-1] + b',"last_event":' + event + b"}", self.start_ms, fact)


class HomeState:
    """A home's current state. Builds its documents from its cameras' reports."""

    def __init__(self, home: Home, since_ms: int, seed: int) -> None:
        self.home = home
        self.is_dark = False
        self.key = home.structure_id.encode()
        self._document, self._without_cameras = (home_template(home, has_cameras=cameras) for cameras in (True, False))
        self.cameras = [CameraState(self, camera, since_ms) for camera in home.cameras]
        self._devices = HomeDevices(home, seed)

    def document(self, number: int, now_ms: int, memory_ms: int) -> Event:
        """The document at `now_ms`, with the sequence number `number`. Omits events that began more than `memory_ms` ago."""
        remembered_ms = now_ms - memory_ms
        reports = [camera.eventful if camera.start_ms >= remembered_ms else camera.silent for camera in self.cameras]
        cameras = b"{" + b",".join([report.json for report in reports]) + b"}"
        oldest_ms = min([now_ms, *[report.start_ms for report in reports if report.start_ms is not None]])
        facts = tuple([report.fact for report in reports if report.fact is not None])
        return Event(now_ms, oldest_ms, self.key, self._document.fill(b"%012x" % number, *self._devices.report(now_ms), cameras), facts)

    def document_without_cameras(self, number: int, now_ms: int) -> Event:
        """A document without cameras."""
        return Event(now_ms, now_ms, self.key, self._without_cameras.fill(b"%012x" % number, *self._devices.report(now_ms)))
