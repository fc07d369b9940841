"""When a camera is offline: when it says so, and when nothing was heard of it for a while. Pure functions; `cameras` runs them in Spark.

A camera's documents wait until the watermark has passed them, and count in order of event time. So an answer is final when it is given: it
depends neither on the order in which documents arrive nor on how they are split into batches.
"""

from math import inf
from typing import NamedTuple

FLAPS = 4
FLAPPING_MS = 10 * 60_000
"""A camera that goes offline FLAPS times within this time is flapping. One whose state has not changed for this long is steady again."""
ONLINE, OFFLINE, BACK, FLAPPING = "online", "offline", "back", "flapping"


class Report(NamedTuple):
    """A document that contains the camera. Times are ms since 1970. sighting_ms: the newest sighting of a person in it."""

    at_ms: int
    is_online: bool
    sighting_ms: int | None = None


class Status(NamedTuple):
    """The status of a camera. incident_ms: when it went offline after it had been steady. gone_ms: when it recently went offline.

    first_ms: when it was first heard of since it was forgotten; None if a version without this field already knew it.
    """

    is_online: bool
    is_silent: bool
    since_ms: int
    seen_ms: int
    sighting_ms: int | None
    incident_ms: int | None = None
    gone_ms: tuple[int, ...] = ()
    first_ms: int | None = None


class Camera(NamedTuple):
    """The state of a key. waiting: documents after the watermark. timer_ms: the next timer that is registered."""

    status: Status | None = None
    waiting: frozenset[Report] = frozenset()
    timer_ms: int | None = None


class Change(NamedTuple):
    """A change of a camera's state. known_ms: the watermark from which it is certain. alert: what to tell a person, if anything.

    status: None when the camera is forgotten.
    """

    known_ms: int
    status: Status | None
    alert: str | None = None


class Limits(NamedTuple):
    """A camera that no document contained for longer than `silence_ms` is offline; for longer than `forget_ms`, it is forgotten."""

    silence_ms: int
    forget_ms: int


def advance(camera: Camera, until_ms: float, limits: Limits) -> tuple[Camera, list[Change]]:
    """Takes the documents up to the watermark `until_ms` into the camera's status. Returns its changes in order."""
    status = camera.status
    changes: list[Change] = []
    for report in sorted((report for report in camera.waiting if report.at_ms <= until_ms), key=_order):
        status = _unheard(status, report.at_ms - 1, limits, changes)
        status = _heard(status, report, changes)
    status = _unheard(status, until_ms, limits, changes)
    return camera._replace(status=status, waiting=frozenset(report for report in camera.waiting if report.at_ms > until_ms)), changes


def next_change_ms(camera: Camera, limits: Limits) -> int | None:
    """The watermark at which the camera's state changes next if nothing more is heard. None if it never does."""
    return next((change.known_ms for change in advance(camera, inf, limits)[1]), None)


def _order(report: Report) -> tuple[int, bool, bool, int]:
    """The sort key of a camera's documents. At equal times, the newest sighting comes first, because the change reports it."""
    return report.at_ms, report.is_online, report.sighting_ms is None, -(report.sighting_ms or 0)


def _heard(before: Status | None, report: Report, changes: list[Change]) -> Status:
    sighting_ms = max((time_ms for time_ms in (before and before.sighting_ms, report.sighting_ms) if time_ms is not None), default=None)
    if before is not None and before.is_online == report.is_online:
        return before._replace(is_silent=False, seen_ms=report.at_ms, sighting_ms=sighting_ms)
    first_ms = report.at_ms if before is None else before.first_ms
    status = Status(
        report.is_online, is_silent=False, since_ms=report.at_ms, seen_ms=report.at_ms, sighting_ms=sighting_ms, first_ms=first_ms
    )
    return _changed(before, status, report.at_ms, changes)


def _unheard(status: Status | None, until_ms: float, limits: Limits, changes: list[Change]) -> Status | None:
    """The status after a silence up to `until_ms`. A silent camera is offline since it was last seen."""
    if status is not None and status.is_online and until_ms - status.seen_ms >= limits.silence_ms:
        silent = status._replace(is_online=False, is_silent=True, since_ms=status.seen_ms)
        status = _changed(status, silent, status.seen_ms + limits.silence_ms, changes)
    if status is not None and until_ms - status.seen_ms >= limits.forget_ms:
        changes.append(Change(status.seen_ms + limits.forget_ms, None))
        return None
    return status


def _changed(before: Status | None, status: Status, known_ms: int, changes: list[Change]) -> Status:
    """Adds the change, with an alert unless the camera is online for the first time or its flapping has already been reported."""
    incident_ms, gone_ms = (before.incident_ms, before.gone_ms) if before is not None else (None, ())
    was_flapping = len(gone_ms) >= FLAPS
    if status.is_online:
        alert = None if incident_ms is None or was_flapping else BACK
    else:
        if before is None or incident_ms is None or status.since_ms - before.since_ms > FLAPPING_MS:
            incident_ms, gone_ms, was_flapping = status.since_ms, (), False
        recent = [time_ms for time_ms in gone_ms if was_flapping or status.since_ms - time_ms < FLAPPING_MS]
        gone_ms = (*recent, status.since_ms)[:FLAPS]
        alert = None if was_flapping else FLAPPING if len(gone_ms) == FLAPS else OFFLINE
    status = status._replace(incident_ms=incident_ms, gone_ms=gone_ms)
    changes.append(Change(known_ms, status, alert))
    return status
