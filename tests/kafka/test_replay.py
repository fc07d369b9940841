"""Dead letters go back after a mend, and `verify` says whether that brought what was missing."""

import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

from plain import START, dropped, one_camera, read_topic, results, write_topic
from running import environment, succeed, verify

STATS, LETTERS = "nest-camera-stats", "nest-dead-letters"
KILLED_IN_A_REPLAY = """
import os, signal, sys
from streamgauge.dead_letters import replay
from streamgauge.cli import main

replay._SENDS_AT_ONCE = 2
acknowledged = []

def note(sending, error, message):
    acknowledged.append(message.offset())
    if len(acknowledged) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

replay._Sending._note = note
sys.argv = ["streamgauge", "dead-letters", "replay", "--yes"]
main()
"""
"""`streamgauge dead-letters replay`, which gets signal 9 when Kafka has acknowledged its third record."""


def run_once(settings, **variables):
    succeed("run", STATS, LETTERS, "--once", settings=settings, **variables)


def test_after_a_mend_and_a_replay_that_is_killed_each_record_counts_once(fresh):
    now, mended = datetime.now(UTC), {"STREAMGAUGE_FUTURE": "1 hour"}
    ahead = [one_camera(f"cam-{number}", now + timedelta(minutes=30)) for number in range(8)]
    write_topic(fresh, "nest-logs", [one_camera("cam-8", now), *ahead, b"no JSON"], to=0, key=b"home-1")
    run_once(fresh)
    assert sum(results(fresh).values()) == 1
    assert len(read_topic(fresh, "dead-letters")) == 9
    assert verify(STATS, settings=fresh, **mended)[STATS]["verdict"] == "wrong", "the mend alone brings nothing"

    killed = subprocess.run([sys.executable, "-c", KILLED_IN_A_REPLAY], env=environment(fresh), check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    sent = len(read_topic(fresh, "nest-logs")) - 10
    assert 3 <= sent < 9
    assert succeed("dead-letters", "replay", "--yes", settings=fresh).stdout == f"sent {9 - sent}\n"
    assert succeed("dead-letters", "replay", "--yes", settings=fresh).stdout == "nothing to send\n"
    assert len(read_topic(fresh, "nest-logs")) == 19

    run_once(fresh, **mended)
    assert sum(results(fresh).values()) == 9
    found = verify(STATS, LETTERS, settings=fresh, **mended)
    assert found[STATS]["verdict"] == "right", found
    rows = found[LETTERS]["rows"]
    assert (rows["equal"], rows["missing"], rows["extra"]) == (2, 0, 8), (
        "what is no JSON is a dead letter again, and 8 records no longer are"
    )


def test_an_event_that_comes_too_late_by_then_is_dropped_and_counted_as_such_until_a_reset(fresh):
    mended = {"STREAMGAUGE_FUTURE": "2 days"}
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START + timedelta(days=1))], to=0, clock=lambda _: START)
    run_once(fresh)
    later = START + timedelta(days=3)
    write_topic(fresh, "nest-logs", [one_camera(f"later-{number}", later) for number in range(3)], partitions=3, clock=lambda _: later)
    run_once(fresh)
    succeed("dead-letters", "replay", "--yes", settings=fresh)
    run_once(fresh, **mended)
    assert sum(results(fresh).values()) == 3
    assert dropped(fresh, STATS) == 1
    rows = verify(STATS, settings=fresh, **mended)[STATS]["rows"]
    assert (rows["equal"], rows["missing"]) == (1, 1), "by the rules of today the record was there in time, too"

    succeed("reset", STATS, "--yes", settings=fresh)
    run_once(fresh, **mended)
    assert sum(results(fresh).values()) == 4
    assert verify(STATS, settings=fresh, **mended)[STATS]["verdict"] == "right"
