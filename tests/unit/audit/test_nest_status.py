"""Cameras' states and alerts, told by the audit and by the pipeline: random histories in, the same changes out."""

import random

from audit.domains.nest_status import Memory, spells, with_alerts
from pipeline.state.offline import Camera, Limits, Report, advance

MINUTE_MS = 60_000
LIMITS = Limits(silence_ms=10 * MINUTE_MS, forget_ms=200 * MINUTE_MS)
HISTORIES = 2000


def history(rng):
    """Up to thirty documents of a camera, in steps that are near the limits, some at the same moment."""
    at_ms, found = 0, []
    for _ in range(rng.randrange(1, 30)):
        at_ms += rng.choice([0, 1, MINUTE_MS, 3 * MINUTE_MS, 10 * MINUTE_MS - 1, 10 * MINUTE_MS, 10 * MINUTE_MS + 1, 200 * MINUTE_MS])
        sighting_ms = rng.choice([None, at_ms, at_ms - MINUTE_MS])
        found.append(Report(at_ms, rng.random() < 0.6, sighting_ms))
    return found


def by_pipeline(seen, until_ms):
    _, changes = advance(Camera(waiting=frozenset(seen)), until_ms, LIMITS)
    return [change.status and (*change.status[:5], change.status.incident_ms, change.status.first_ms, change.alert) for change in changes]


def by_audit(seen, *watermarks):
    """What is told up to each watermark, one after the other, as of each the documents before it are known."""
    memory, changes, after_ms = Memory(), [], -1
    for until_ms in watermarks:
        in_time = {one for one in seen if after_ms < one.at_ms <= until_ms}
        ordered = sorted(in_time, key=lambda one: (one.at_ms, one.is_online, one.sighting_ms is None, -(one.sighting_ms or 0)))
        own = spells([one._asdict() for one in ordered], until_ms, LIMITS.silence_ms, LIMITS.forget_ms, memory)
        changes += [
            spell
            and (spell.is_online, spell.is_silent, spell.since_ms, spell.seen_ms, spell.sighting_ms, incident_ms, spell.first_ms, alert)
            for spell, incident_ms, alert in with_alerts(own, memory)
        ]
        after_ms = until_ms
    return changes


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


def test_what_is_told_does_not_depend_on_the_watermarks_in_between():
    rng = random.Random(12)
    for _ in range(HISTORIES):
        seen = history(rng)
        last_ms = seen[-1].at_ms + rng.choice([-MINUTE_MS, 0, 9 * MINUTE_MS, 300 * MINUTE_MS])
        between = sorted(rng.choice([one.at_ms + rng.choice([-1, 0, MINUTE_MS, 10 * MINUTE_MS]) for one in seen]) for _ in range(3))
        between = [until_ms for until_ms in between if until_ms < last_ms]
        assert by_audit(seen, *between, last_ms) == by_audit(seen, last_ms), f"of {seen} up to {between}"
