"""What `nest-camera-status` and its alerts must be: the spells of a camera, in order of its documents' times, and the incidents made of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from audit.audited import Row

SKEW = "1 hour"
"""How far an idle partition holds back the watermark by which cameras are silent."""
STEADY_MS = 10 * 60_000
"""A state that has lasted for longer than this is steady: going offline after it begins an incident."""
FLAPS = 4
"""The time that a camera goes offline within STEADY_MS with which it is flapping, and its incident silent from then on."""

REPORTS = """
    SELECT
        topic, partition, "offset", device_id, clock AS reported_at, coalesce(as_flag(camera.is_online), true) AS is_online,
        CASE WHEN as_flag(event.has_person) AND as_moment(event.start_time) <= clock + INTERVAL '{future}'
            THEN epoch_ms(as_moment(event.start_time)) END AS sighting_ms
    FROM cameras
    WHERE is_identifier(device_id)
"""
"""A camera is heard of when a document contains it, at the time of the document. It is online unless it says `is_online` false."""

IN_ORDER = """
    SELECT device_id, coalesce(zip_code, 'unknown') AS zip_code, epoch_ms(CAST(reported_at AS TIMESTAMP)) AS at_ms, is_online, sighting_ms
    FROM counted LEFT JOIN device_locations USING (device_id)
    WHERE reported_at <= {until}
    ORDER BY device_id, at_ms, is_online, sighting_ms DESC NULLS LAST
"""


@dataclass(frozen=True)
class Spell:
    """A time for which a camera is online, or is not. since_ms: when it began; of a silent one, when the camera was last heard of."""

    is_online: bool
    is_silent: bool
    since_ms: int
    seen_ms: int
    sighting_ms: int | None
    first_ms: int


@dataclass
class Memory:
    """The state of a camera.

    spell: the current one. reported: the spell of its last row. incident_ms: when its incident began. offline_ms: when it went offline in the incident.
    """

    spell: Spell | None = None
    reported: Spell | None = None
    incident_ms: int | None = None
    offline_ms: Sequence[int] = ()


Memories = dict[tuple[str, str], Memory]
"""By device_id and zip_code."""


def spells(reports: Iterable[Row], until_ms: int, silence_ms: int, forget_ms: int, memory: Memory) -> Iterator[Spell | None]:
    """The spells of a camera, as they were known when they began; None when it is forgotten.

    reports: in order of their times. memory: of earlier ones, up to an earlier `until_ms`; updated.
    """
    for report in (*reports, None):
        now, moment_ms = memory.spell, until_ms if report is None else report["at_ms"] - 1
        if now is not None and now.is_online and moment_ms >= now.seen_ms + silence_ms:
            now = memory.spell = replace(now, is_online=False, is_silent=True, since_ms=now.seen_ms)
            yield now
        if now is not None and moment_ms >= now.seen_ms + forget_ms:
            now = memory.spell = None
            yield None
        if report is not None:
            at_ms, is_online = report["at_ms"], report["is_online"]
            sightings: list[int] = [ms for ms in (None if now is None else now.sighting_ms, report["sighting_ms"]) if ms is not None]
            is_new = now is None or now.is_online != is_online
            first_ms, since_ms = (at_ms if now is None else now.first_ms), (at_ms if now is None or is_new else now.since_ms)
            memory.spell = Spell(
                is_online, is_silent=False, since_ms=since_ms, seen_ms=at_ms, sighting_ms=max(sightings, default=None), first_ms=first_ms
            )
            if is_new:
                yield memory.spell


def with_alerts(spells_of_camera: Iterable[Spell | None], memory: Memory) -> Iterator[tuple[Spell | None, int | None, str | None]]:
    """Each spell, with the beginning of its incident and its alert."""
    for spell in spells_of_camera:
        before, offline_ms, alert = memory.reported, memory.offline_ms, None
        if spell is None:
            memory.incident_ms, offline_ms = None, ()
        elif spell.is_online:
            alert = "back" if memory.incident_ms is not None and len(offline_ms) < FLAPS else None
        else:
            if before is None or memory.incident_ms is None or spell.since_ms - before.since_ms > STEADY_MS:
                memory.incident_ms, offline_ms = spell.since_ms, ()
            if len(offline_ms) < FLAPS:
                offline_ms = (*(ms for ms in offline_ms if spell.since_ms - ms < STEADY_MS), spell.since_ms)
                alert = "flapping" if len(offline_ms) == FLAPS else "offline"
        memory.reported, memory.offline_ms = spell, offline_ms
        yield spell, memory.incident_ms, alert


def states(reports: Sequence[Row], until_ms: int, memories: Memories, *, silence_ms: int, forget_ms: int) -> Iterator[Row]:
    """The rows of cameras, each in the order of its changes. Of a camera that is forgotten, only its id."""
    by_camera: dict[tuple[str, str], Sequence[Row]] = dict.fromkeys(memories, ())
    by_camera |= {camera: list(group) for camera, group in groupby(reports, itemgetter("device_id", "zip_code"))}
    for (device_id, zip_code), of_camera in by_camera.items():
        memory = memories.setdefault((device_id, zip_code), Memory())
        for spell, incident_ms, alert in with_alerts(spells(of_camera, until_ms, silence_ms, forget_ms, memory), memory):
            if spell is None:
                yield {"device_id": device_id}
                continue
            yield {
                "device_id": device_id,
                "zip_code": zip_code,
                "state": "online" if spell.is_online else "offline",
                "reason": None if spell.is_online else "silent" if spell.is_silent else "is_online is false",
                "since": _text(spell.since_ms),
                "last_seen": _text(spell.seen_ms),
                "last_sighting": _text(spell.sighting_ms),
                "alert": alert,
                "incident": _text(incident_ms),
                "first_seen": _text(spell.first_ms),
            }
        if memory.spell is None:
            del memories[device_id, zip_code]


def alerts(reports: Sequence[Row], until_ms: int, memories: Memories, *, silence_ms: int, forget_ms: int) -> Iterator[Row]:
    """The alerts, in order: a row for each change that has one."""
    for row in states(reports, until_ms, memories, silence_ms=silence_ms, forget_ms=forget_ms):
        if row.get("alert") is not None:
            yield {name: row[name] for name in ("device_id", "zip_code", "alert", "incident", "state", "reason", "since")}


def _text(time_ms: int | None) -> str | None:
    return None if time_ms is None else f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
