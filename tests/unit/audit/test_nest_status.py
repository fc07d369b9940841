"""Cameras' states and alerts, told by the audit and by the pipeline: random histories in, the same changes out."""

import random

from audit.domains.nest_status import spells, told
from pipeline.state.offline import Camera, Limits, Seen, advance

MINUTE_MS = 60_000
LIMITS = Limits(silence_ms=10 * MINUTE_MS, forget_ms=200 * MINUTE_MS)
HISTORIES = 2000


def history(rng):
    """Up to thirty documents of a camera, in steps that are near the limits, some at the same moment."""
    at_ms, found = 0, []
    for _ in range(rng.randrange(1, 30)):
        at_ms += rng.choice([0, 1, MINUTE_MS, 3 * MINUTE_MS, 10 * MINUTE_MS - 1, 10 * MINUTE_MS, 10 * MINUTE_MS + 1, 200 * MINUTE_MS])
        sighting_ms = rng.choice([None, at_ms, at_ms - MINUTE_MS])
        found.append(Seen(at_ms, rng.random() < 0.6, sighting_ms))
    return found


def by_pipeline(seen, until_ms):
    _, changes = advance(Camera(waiting=frozenset(seen)), until_ms, LIMITS)
    return [change.status and (*change.status[:5], change.status.incident_ms, change.status.first_ms, change.alert) for change in changes]


def by_audit(seen, until_ms):
    in_time = {one for one in seen if one.at_ms <= until_ms}
    ordered = sorted(in_time, key=lambda one: (one.at_ms, one.is_online, one.sighting_ms is None, -(one.sighting_ms or 0)))
    found = told(spells([one._asdict() for one in ordered], until_ms, LIMITS.silence_ms, LIMITS.forget_ms))
    return [
        spell and (spell.is_online, spell.is_silent, spell.since_ms, spell.seen_ms, spell.sighting_ms, incident_ms, spell.first_ms, alert)
        for spell, incident_ms, alert in found
    ]


def test_the_audit_tells_the_changes_that_the_pipeline_tells():
    rng = random.Random(11)
    kinds = set()
    for _ in range(HISTORIES):
        seen = history(rng)
        until_ms = seen[-1].at_ms + rng.choice([-MINUTE_MS, 0, 9 * MINUTE_MS, 10 * MINUTE_MS, 300 * MINUTE_MS])
        ours = by_audit(seen, until_ms)
        assert ours == by_pipeline(seen, until_ms), f"of {seen} up to {until_ms}"
        kinds |= {change and change[-1] for change in ours}
    assert kinds == {None, "offline", "back", "flapping"}
