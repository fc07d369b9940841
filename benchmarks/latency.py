"""Latency of the people count of Nest, one engine after the other: `PYTHONPATH=tests python -m benchmarks.latency [SECONDS [ENGINE ...]]`.

From a document's Kafka timestamp to that of the first result record that counts it, at 1,000 documents/s, for SECONDS (60) after a minute of
warm-up. Engines, all by default:

micro-batches           nest-camera-stats, with the archive and dead letters
micro-batches-alone     nest-camera-stats, with its dead letters
real-time               as the first, in Spark's real-time mode, a checkpoint every 30 seconds
real-time-alone         as the second, in that mode
kafka-streams           the same count in Kafka Streams (peers/NestStreams.java), no cache or linger before its result, no dead letters
"""

import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from running import environment

from benchmarks.daily import beside
from benchmarks.measuring import ME, cpu_seconds, fresh_platform, messages, own_settings, say, say_machine
from benchmarks.peers.engines import arguments, compiled
from benchmarks.sightings import Group, sightings
from contract.domains.nest import NEST_CAMERA_STATS, NEST_LOGS
from infrastructure import durations
from infrastructure.settings import Settings

STREAMS = "kafka-streams"
SPARK = {
    "micro-batches": (ME, ("nest-camera-stats", "nest-archive"), {"STREAMGAUGE_REAL_TIME": "off"}),
    "micro-batches-alone": (ME, ("nest-camera-stats",), {"STREAMGAUGE_REAL_TIME": "off"}),
    "real-time": (ME, ("nest-camera-stats", "nest-archive"), {}),
    "real-time-alone": (ME, ("nest-camera-stats",), {}),
}
"""Command, queries and settings of each engine that is Streamgauge."""
SECONDS, WARM_UP_SECONDS, SETTLE_SECONDS = 60, 60, 5
FEWEST = 100
"""Latencies without which percentiles say nothing."""
LOAD = ("--cameras", "800", "--start", "2026-01-01T00:00:00Z", "--speed-up", "60")
"""Event times are in the past: in Kafka Streams they become timestamps of records, and Kafka rejects timestamps in the future.

In a minute, 800 cameras see about 470 people.
"""
DOCUMENTS_A_SECOND = 1000


def main() -> None:
    """Prints a line an engine."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    say_machine()
    for engine in sys.argv[2:] or [*SPARK, STREAMS]:
        with fresh_platform() as settings, tempfile.TemporaryDirectory() as folder:
            command, own, result = prepared(engine, settings, Path(folder))
            keep_every_result(settings, result)
            cores = run_beside_a_producer(command, {**environment(settings), **own}, settings, seconds)
            latencies = sorted(latencies_ms(settings, result))
            if len(latencies) < FEWEST:
                sys.exit(
                    f"{engine} has counted {len(latencies)} people in time, expected {FEWEST} or more; measure longer than {seconds} s, or while nothing else runs"
                )
            say(f"{engine}: {figures(latencies)}, {cores:.2f} cores")


def prepared(engine: str, settings: Settings, folder: Path) -> tuple[Sequence[str], Mapping[str, str], str]:
    """The engine's command, the variables it needs, and its result topic."""
    if engine == STREAMS:
        lateness = durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK")
        streams = compiled(own_settings(folder), folder)
        return [*streams, *arguments(settings, engine, lateness), "at-once"], {}, engine
    program, queries, own = SPARK[engine]
    return [*program, "run", *queries], own, NEST_CAMERA_STATS.name


def run_beside_a_producer(command: Sequence[str], variables: Mapping[str, str], settings: Settings, seconds: int) -> float:
    """Runs the engine while documents arrive; returns the cores that it used after the warm-up."""
    documents = DOCUMENTS_A_SECOND * (WARM_UP_SECONDS + seconds)
    load = ("--rate", str(DOCUMENTS_A_SECOND), "--limit", str(documents), *LOAD)
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, env=variables, stdout=log, stderr=log) as engine:
        with beside("produce", "nest", *load, settings=settings) as producer:
            time.sleep(WARM_UP_SECONDS)
            used, since = cpu_seconds(engine.pid), time.monotonic()
            producer.wait()
            cores = (cpu_seconds(engine.pid) - used) / (time.monotonic() - since)
        time.sleep(SETTLE_SECONDS)
        ended = engine.poll()
        engine.terminate()
        if ended is not None:
            log.seek(0)
            sys.exit(f"{command[0]} ended with exit code {ended}:\n{log.read().decode(errors='replace')[-4000:]}")
    return cores


def keep_every_result(settings: Settings, topic: str) -> None:
    """Switches compaction off, which would delete the results from which latencies are read, and has Kafka note when each one arrived."""
    config = {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    admin = settings.kafka.admin()  # in a variable, because a client that is garbage-collected never answers
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(10)


def latencies_ms(settings: Settings, result: str) -> Iterator[int]:
    """For each sighting after the warm-up: from its first document to the first result that counts as many as have been seen by then."""
    counts: dict[Group, list[int]] = defaultdict(list)
    times: dict[Group, list[int]] = defaultdict(list)
    for message in messages(settings, result):
        row = orjson.loads(message.value() or b"{}")
        group = row["zip_code"], row["window"]["start"]
        counts[group].append(row["count"])
        times[group].append(message.timestamp()[1])
    documents = sorted(messages(settings, NEST_LOGS.name), key=lambda message: message.timestamp()[1])
    begin = documents[0].timestamp()[1] + WARM_UP_SECONDS * 1000
    seen: dict[Group, int] = defaultdict(int)
    for at, group in sightings(documents):
        seen[group] += 1
        answer = bisect_left(counts[group], seen[group])
        if at >= begin and answer < len(counts[group]):
            yield times[group][answer] - at


def figures(latencies: Sequence[int]) -> str:
    """Percentiles of sorted milliseconds."""
    cuts = statistics.quantiles(latencies, n=100)
    return (
        f"p50 {cuts[49]:,.0f} ms, p95 {cuts[94]:,.0f} ms, p99 {cuts[98]:,.0f} ms, worst {latencies[-1]:,} ms ({len(latencies):,} sightings)"
    )


if __name__ == "__main__":
    main()
