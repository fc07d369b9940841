"""Dead letters go back after a mend, and `verify` says whether that brought what was missing."""

from datetime import UTC, datetime, timedelta

from plain import one_camera, read_topic, results, write_topic
from running import succeed, verify

STATS = "nest-camera-stats"
MENDED = {"STREAMGAUGE_FUTURE": "1 hour"}


def run_once(settings, **variables):
    succeed("run", STATS, "--once", settings=settings, **variables)


def test_a_replay_after_a_mend_brings_what_was_missing_once(fresh):
    now = datetime.now(UTC)
    write_topic(fresh, "nest-logs", [one_camera("cam-1", now), one_camera("cam-2", now + timedelta(minutes=30))], to=0, key=b"home-1")
    run_once(fresh)
    assert sum(results(fresh).values()) == 1
    assert len(read_topic(fresh, "dead-letters")) == 1
    before = verify(STATS, settings=fresh, **MENDED)[STATS]
    assert before["verdict"] == "wrong", f"the mend alone brings nothing: {before}"

    assert succeed("dead-letters", "replay", "--reason", "future", "--yes", settings=fresh).stdout == "sent 1\n"
    run_once(fresh, **MENDED)
    assert sum(results(fresh).values()) == 2
    assert verify(STATS, settings=fresh, **MENDED)[STATS]["verdict"] == "right"

    assert succeed("dead-letters", "replay", "--yes", settings=fresh).stdout == "nothing to send\n"
    assert len(read_topic(fresh, "nest-logs")) == 3
