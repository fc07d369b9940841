"""Measures the Nest domain on this machine: `PYTHONPATH=tests python -m benchmarks.nest [producer pipeline latency]`, all of them by default.

producer  documents/s into the broker, of 1,000,000 of about 1.6 kB
pipeline  documents/s from the earliest to the last result, with the start of the process, and warm; alone, and with the archive
latency   from a document's Kafka timestamp to that of the result record that first counts it, at 1,000 documents/s, with archive and dead letters running
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import orjson
from confluent_kafka import Message
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from running import environment

from benchmarks.measuring import ME, fresh_platform, messages, say, say_machine
from contract.settings import Settings
from contract.storage.data_files import data_file

Group = tuple[str, str]
"""Zip code and start of the hour."""
DOCUMENTS = 1_000_000
LATENCY_SECONDS, WARM_UP_SECONDS, DOCUMENTS_A_SECOND = 60, 60, 1000


def main() -> None:
    """Prints a line a figure."""
    chosen = sys.argv[1:] or ["producer", "pipeline", "latency"]
    say_machine()
    if {"producer", "pipeline"} & set(chosen):
        with fresh_platform() as settings:
            measure_producer(settings)
            if "pipeline" in chosen:
                measure_pipeline(settings)
    if "latency" in chosen:
        with fresh_platform() as settings:
            measure_latency(settings)


def measure_producer(settings: Settings) -> None:
    """Produces DOCUMENTS, as fast as it goes."""
    command = [*ME, "produce", "nest", "--unpaced", "--limit", str(DOCUMENTS), "--start", "2026-01-01T00:00:00Z", "--json"]
    done = subprocess.run(command, env=environment(settings), capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout)
    size = statistics.mean(len(message.value() or b"") for message in messages(settings, "nest-logs", last=1000))
    say(
        f"producer: {summary['events_per_second']:,.0f} documents/s, {DOCUMENTS:,} documents of {size:,.0f} bytes on average in {summary['seconds']:.1f} s"
    )


def measure_pipeline(settings: Settings) -> None:
    """Runs --once over what is there: in a process of its own, then twice in this one, of which the second is warm."""
    for names in (["nest-camera-stats"], ["nest-camera-stats", "nest-archive"]):
        own = replace(settings, home=Path(tempfile.mkdtemp(prefix="streamgauge-bench-")))
        started = time.monotonic()
        subprocess.run([*ME, "run", *names, "--once"], env=environment(own), check=True, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        say(f"pipeline, start included, {' and '.join(names)}, and dead letters: {DOCUMENTS / seconds:,.0f} documents/s ({seconds:.1f} s)")
    from pipeline.domains.nest import queries
    from pipeline.running.runner import Runner
    from pipeline.spark.session import spark_session

    spark = spark_session(settings)
    stats = [query for query in queries(settings) if query.name == "nest-camera-stats"]
    for what in ("first in its process", "warm", "warm, again"):
        own = replace(settings, home=Path(tempfile.mkdtemp(prefix="streamgauge-bench-")))
        started = time.monotonic()
        Runner(spark, own, once=True).run(stats)
        seconds = time.monotonic() - started
        say(f"pipeline, {what}, nest-camera-stats alone: {DOCUMENTS / seconds:,.0f} documents/s ({seconds:.1f} s)")
    spark.stop()


def measure_latency(settings: Settings) -> None:
    """Runs everything at DOCUMENTS_A_SECOND, and pairs documents with results afterwards."""
    keep_every_result(settings)
    with subprocess.Popen(
        [*ME, "run", "nest-camera-stats", "nest-archive"], env=environment(settings), stderr=subprocess.DEVNULL
    ) as pipeline:
        produce = [
            *ME,
            "produce",
            "nest",
            "--rate",
            str(DOCUMENTS_A_SECOND),
            "--limit",
            str(DOCUMENTS_A_SECOND * (WARM_UP_SECONDS + LATENCY_SECONDS)),
            "--speed-up",
            "60",
        ]
        subprocess.run(produce, env=environment(settings), check=True, stderr=subprocess.DEVNULL)
        time.sleep(5)
        pipeline.terminate()
    latencies = sorted(latencies_ms(settings))
    cuts = statistics.quantiles(latencies, n=100)
    say(
        f"latency at {DOCUMENTS_A_SECOND:,} documents/s, archive and dead letters running: p50 {cuts[49]:,.0f} ms, p95 {cuts[94]:,.0f} ms, p99 {cuts[98]:,.0f} ms, worst {latencies[-1]:,} ms ({len(latencies):,} sightings)"
    )


def keep_every_result(settings: Settings) -> None:
    """Switches compaction off: it would delete the results from which latencies are read, and leave later ones that look like a stall."""
    policy = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, "nest-camera-stats", incremental_configs=[policy])
    admin = settings.kafka.admin()  # in a variable, because a client that is garbage-collected never answers
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(10)


def latencies_ms(settings: Settings) -> Iterator[int]:
    """For each sighting after the warm-up: from its first document to the first result that counts as many as have been seen by then."""
    documents = sorted(messages(settings, "nest-logs"), key=lambda message: message.timestamp()[1])
    results: dict[Group, list[tuple[int, int]]] = defaultdict(list)
    for message in messages(settings, "nest-camera-stats"):
        row = orjson.loads(message.value() or b"{}")
        results[row["zip_code"], row["window"]["start"]].append((row["count"], message.timestamp()[1]))
    counted: dict[Group, int] = defaultdict(int)
    begin = documents[0].timestamp()[1] + WARM_UP_SECONDS * 1000
    for at, group in sightings(documents):
        counted[group] += 1
        answer = next((time_ms for count, time_ms in results[group] if count >= counted[group]), None)
        if at >= begin and answer is not None:
            yield answer - at


def sightings(documents: Iterable[Message]) -> Iterator[tuple[int, Group]]:
    """Each sighting once: the Kafka timestamp (ms) of its first document, its zip code and hour. Written without Spark, to compare with."""
    with data_file("device_locations.csv").open() as file:
        zip_codes = dict(line.split(",")[:2] for line in file.read().splitlines()[1:])
    seen: set[tuple[str, datetime]] = set()
    for message in documents:
        for camera in (orjson.loads(message.value() or b"{}")["devices"].get("cameras") or {}).values():
            event = camera.get("last_event") or {}
            if not event.get("has_person"):
                continue
            start = datetime.fromisoformat(event["start_time"])  # not its text: one event is reported with milliseconds and without
            if (camera["device_id"], start) not in seen:
                seen.add((camera["device_id"], start))
                yield message.timestamp()[1], (zip_codes.get(camera["device_id"], "unknown"), f"{start:%Y-%m-%dT%H:00:00Z}")


if __name__ == "__main__":
    main()
