"""Measures `streamgauge demo` on this machine: `PYTHONPATH=tests python -m benchmarks.demo`. Everything is fetched before, so that no download is timed.

Prints the seconds and the CPU from the command to the first row of each domain's result topic; in the fifth minute after that, when Java has
compiled most of Spark, the cores that all its processes use, what they hold in memory, and how long micro-batches take; and the seconds that it
takes to end after Ctrl-C.
"""

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import KafkaException
from running import environment

from benchmarks.measuring import (
    ME,
    MIB,
    batches,
    cpu_seconds,
    family,
    messages,
    own_settings,
    resident_bytes,
    say,
    say_machine,
    unit_seconds,
)
from contract.domains.nest import NEST_CAMERA_STATS
from contract.domains.taxi import TAXI_BOROUGH_STATS
from contract.domains.wikimedia import WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from infrastructure.java import jars
from infrastructure.settings import Settings
from infrastructure.text import utc_text

FIRST_OF = (NEST_CAMERA_STATS, TAXI_BOROUGH_STATS, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS)
SETTLE_SECONDS, BUSY_SECONDS, PATIENCE_SECONDS, LARGEST_SHOWN = 240, 60, 300, 8


def main() -> None:
    """Prints a line a figure."""
    say_machine()
    with tempfile.TemporaryDirectory() as home:
        settings = own_settings(Path(home))
        for bundle in jars.SPARK:
            jars.fetch(bundle, settings)
        jars.unpacked("registry", settings)
        started = time.monotonic()
        with subprocess.Popen([*ME, "demo"], env=environment(settings), stderr=subprocess.DEVNULL) as demo:
            try:
                wait_for_rows(settings, demo, started)
                time.sleep(SETTLE_SECONDS)
                weigh(demo.pid)
                say_batches(settings)
            finally:
                asked = time.monotonic()
                demo.send_signal(signal.SIGINT)
                demo.wait(PATIENCE_SECONDS)
            say(f"demo: ended {time.monotonic() - asked:.1f} s after Ctrl-C, exit code {demo.returncode}")


def wait_for_rows(settings: Settings, demo: "subprocess.Popen[bytes]", started: float) -> None:
    """Looks until each result topic has a row, and says when it was there. `started`: of the monotonic clock."""
    waited_for = [topic.name for topic in FIRST_OF]
    while waited_for:
        if demo.poll() is not None or time.monotonic() - started > PATIENCE_SECONDS:
            sys.exit(f"no row in {', '.join(waited_for)} after {time.monotonic() - started:.0f} s; see `streamgauge demo`")
        for name in [name for name in waited_for if has_a_row(settings, name)]:
            units = cpu_seconds(demo.pid) / unit_seconds()
            say(f"demo: first row of {name} after {time.monotonic() - started:.1f} s, {units:.0f} CPU units")
            waited_for.remove(name)
        time.sleep(0.5)


def weigh(pid: int) -> None:
    """Says how many cores the demo uses, and what it holds in memory: all of it, and its largest processes."""
    used, since = cpu_seconds(pid), time.monotonic()
    time.sleep(BUSY_SECONDS)
    say(f"demo: {(cpu_seconds(pid) - used) / (time.monotonic() - since):.2f} cores, {SETTLE_SECONDS} s later")
    processes = family(pid)
    rss = sum(process.memory_info().rss for process in processes)
    say(
        f"demo: {resident_bytes(processes) / 2**30:.2f} GiB resident (shared pages once; {rss / 2**30:.2f} as the sum of RSS) in {len(processes)} processes"
    )
    for process in sorted(processes, key=lambda one: -one.memory_info().rss)[:LARGEST_SHOWN]:
        say(f"      {process.memory_info().rss / MIB:,.0f} MiB  {' '.join(process.cmdline())[-80:]}")


def say_batches(settings: Settings) -> None:
    """Says how long the micro-batches of each query took in the last minute. One in real-time mode lasts as long as its checkpoint interval."""
    since = utc_text(datetime.now(UTC) - timedelta(seconds=BUSY_SECONDS))
    taken: dict[str, list[int]] = {}
    for report in batches(settings):
        if report["time"] > since and report["batch_ms"] is not None:
            taken.setdefault(report["query"], []).append(report["batch_ms"])
    for query, milliseconds in sorted(taken.items()):
        say(
            f"demo: {len(milliseconds)} batches of {query}: median {statistics.median(milliseconds):.0f} ms, longest {max(milliseconds)} ms"
        )


def has_a_row(settings: Settings, topic: str) -> bool:
    """Whether the topic holds a record."""
    try:
        return bool(messages(settings, topic, last=1))
    except (KafkaException, KeyError):
        return False


if __name__ == "__main__":
    main()
