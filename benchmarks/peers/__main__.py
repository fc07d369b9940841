"""Puts other engines beside Streamgauge on this machine: `PYTHONPATH=tests python -m benchmarks.peers`.

All do the job of `nest-camera-stats` (engines.py) over the same documents of the same broker, and write dead letters. kill.py kills them.

start    1,000, 200,000 and 1,000,000 documents: from the start of the process to the exact result, wall seconds, CPU of all that it
         starts, and how many times as much Streamgauge takes. No event is late for the others: their grace period is a year.
backlog  the 200,000 documents again, with a lateness of ten minutes for all, in batches of 20,000: the share of the sightings that counts

A result is exact when each row equals a plain count of the documents. Ends with an error when one is not, the backlog's excepted.
"""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from confluent_kafka import Consumer, TopicPartition
from running import environment

from benchmarks.measuring import ME, cpu_seconds, fresh_platform, messages, own_settings, say, say_machine, unit_seconds
from benchmarks.peers.engines import Engine, installed, peers, streamgauge
from benchmarks.sightings import Group, sightings
from contract.domains.nest import NEST_LOGS
from infrastructure import durations
from infrastructure.settings import Settings

FEW, MANY, MOST, BATCH = 1_000, 200_000, 1_000_000, 20_000
A_YEAR_SECONDS = 366 * 86_400
PATIENCE_SECONDS, QUIET_SECONDS, ASK_SECONDS = 1800, 30, 1
Counts = Mapping[Group, int]


@dataclass(frozen=True)
class Run:
    """What an engine counted, and what it took until that was exact; None if it never was."""

    counted: Counts
    wall_seconds: float | None
    cpu_seconds: float | None


def main() -> None:
    """Prints a line a figure."""
    say_machine()
    with tempfile.TemporaryDirectory() as folder:
        others = installed(own_settings(Path(folder)), Path(folder))
        for documents in (FEW, MANY, MOST):
            with fresh_platform() as settings:
                command = [
                    *ME,
                    "produce",
                    "nest",
                    "--unpaced",
                    "--limit",
                    str(documents),
                    "--cameras",
                    "800",
                    "--start",
                    "2026-01-01T12:00:00Z",
                ]
                subprocess.run(command, env=environment(settings), check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                expected = Counter(group for _, group in sightings(messages(settings, NEST_LOGS.name)))
                measure_start(settings, others, documents, expected)
                if documents == MANY:
                    measure_backlog(settings, others, expected)


def measure_start(settings: Settings, others: Mapping[str, list[str]], documents: int, expected: Counts) -> None:
    """Runs the engines until their results are exact."""
    taken = []
    for engine in (*peers(settings, others, "exact", A_YEAR_SECONDS), streamgauge(settings, "exact", "--once")):
        run = run_of(engine, settings, expected)
        if run.wall_seconds is None or run.cpu_seconds is None or run.counted != expected:
            found, right = (f"{sum(counts.values()):,} sightings in {len(counts):,} rows" for counts in (run.counted, expected))
            sys.exit(f"{engine.name} is not exact: found {found}, expected {right}")
        taken.append((engine.name, run.wall_seconds, run.cpu_seconds))
        units = run.cpu_seconds / unit_seconds()
        say(
            f"{documents:,} documents, {engine.name}: exact in {run.wall_seconds:.1f} s, {run.cpu_seconds:.1f} CPU s, {units:.0f} CPU units"
        )
    *theirs, (ours, wall, cpu) = taken
    for name, peer_wall, peer_cpu in theirs:
        ratios = f"wall {wall / peer_wall:.1f}, CPU {cpu / peer_cpu:.1f}"
        say(f"{documents:,} documents, {ours} / {name}: {ratios}; {len(expected):,} rows equal")


def measure_backlog(settings: Settings, others: Mapping[str, list[str]], expected: Counts) -> None:
    """Runs the engines with the product's lateness, to their ends."""
    everything, lateness = sum(expected.values()), durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK")
    for engine in (
        *peers(settings, others, "backlog", lateness),
        streamgauge(replace(settings, max_offsets_per_trigger=BATCH), "backlog", "--once"),
    ):
        counted = sum(run_of(engine, settings, expected).counted.values())
        say(f"backlog, lateness {settings.watermark}, {engine.name}: {counted / everything:.1%} of {everything:,} sightings count")


def run_of(engine: Engine, settings: Settings, expected: Counts) -> Run:
    """Runs the engine until it has ended or written nothing for a while, and ends it. Exits with what it printed if it fails."""
    with closing(settings.kafka.consumer()) as results, tempfile.TemporaryFile() as log:
        now = results.get_watermark_offsets(TopicPartition(engine.result, 0), 10)[1]
        results.assign([TopicPartition(engine.result, 0, now)])
        with subprocess.Popen(engine.command, env=engine.environment, stdout=log, stderr=log) as process:
            try:
                run = followed(engine, process, results, now, expected)
            finally:
                exit_code = process.poll()
                process.terminate()
        if exit_code:
            log.seek(0)
            sys.exit(f"{engine.name} ended with exit code {exit_code}:\n{log.read().decode(errors='replace')[-4000:]}")
    return run


def followed(engine: Engine, process: "subprocess.Popen[bytes]", results: Consumer, begin: int, expected: Counts) -> Run:
    """Reads the engine's result, from offset `begin`, as it comes."""
    counted: dict[Group, int] = {}
    wall = cpu = None
    result, end = TopicPartition(engine.result, 0), None
    started = asked = wrote = time.monotonic()
    while end is None or max(results.position([result])[0].offset, begin) < end:
        for message in (message for message in results.consume(10_000, 0.1) if message.error() is None):
            row = orjson.loads(message.value() or b"{}")
            counted[row["zip_code"], row["window"]["start"]] = row["count"]
            wrote = time.monotonic()
        if wall is None and counted == expected:
            wall, cpu = time.monotonic() - started, cpu_seconds(process.pid)
        if end is None and time.monotonic() > asked + ASK_SECONDS:
            asked = time.monotonic()
            if process.poll() is not None or (counted and asked > wrote + QUIET_SECONDS):
                end = results.get_watermark_offsets(result, 10)[1]
            elif asked > started + PATIENCE_SECONDS:
                sys.exit(f"{engine.name} has not read all documents in {PATIENCE_SECONDS} s")
    return Run(counted, wall, cpu)


if __name__ == "__main__":
    main()
