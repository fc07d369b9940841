"""Measures the Wikimedia domain on this machine: `PYTHONPATH=tests python -m benchmarks.wikimedia [registry producer pipeline]`, all of them by default.

registry  seconds from the start of the schema registry's process to its first answer, and its memory, with all of it unpacked before
producer  changes/s into the broker, in Avro, of CHANGES simulated ones; and what simulating and encoding alone would allow
pipeline  changes/s from the earliest to the last result, with the start of the process, and warm; and of decoding alone
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import orjson
from pyspark.sql import DataFrame
from running import environment, start_server

from benchmarks.measuring import ME, MIB, family, fresh_platform, messages, own_settings, resident_bytes, say, say_machine
from infrastructure.java import jars
from infrastructure.registry.client import SchemaRegistry
from infrastructure.settings import Settings
from streamgauge.platform.registry import EmbeddedRegistry

CHANGES, CHANGES_ALONE = 500_000, 100_000
QUERY = "wikimedia-edit-stats"
START = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Prints a line a figure."""
    chosen = sys.argv[1:] or ["registry", "producer", "pipeline"]
    say_machine()
    if "registry" in chosen:
        measure_registry()
    if {"producer", "pipeline"} & set(chosen):
        with fresh_platform(with_registry=True) as settings:
            measure_producer(settings)
            if "pipeline" in chosen:
                measure_pipeline(settings)


def measure_registry() -> None:
    """Starts it three times on a fresh home each, one after the other."""
    for _ in range(3):
        with tempfile.TemporaryDirectory() as home:
            settings = own_settings(Path(home))
            jars.unpacked("registry", settings)
            registry = EmbeddedRegistry(settings)
            started = time.monotonic()
            start_server(registry)
            seconds = time.monotonic() - started
            memory = resident_bytes(family(registry.guarded.popen.pid))
            registry.stop()
            say(f"registry: answers after {seconds:.1f} s, {memory / MIB:,.0f} MiB")


def measure_producer(settings: Settings) -> None:
    """Produces CHANGES, as fast as it goes; then simulates and encodes without a broker."""
    command = [*ME, "produce", "wikimedia", "--unpaced", "--limit", str(CHANGES), "--start", START.isoformat(), "--json"]
    done = subprocess.run(command, env=environment(settings), capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout)
    size = statistics.mean(len(message.value() or b"") for message in messages(settings, "wikimedia", last=1000))
    say(
        f"producer: {summary['events_per_second']:,.0f} changes/s, {CHANGES:,} changes of {size:,.0f} bytes of Avro on average in {summary['seconds']:.1f} s"
    )
    from infrastructure.storage.data_files import data_file
    from producers.wikimedia.avro import encoder, schema_text
    from producers.wikimedia.edits import edit_event
    from producers.wikimedia.simulation import Simulation, simulate

    started = time.monotonic()
    texts = list(islice(simulate(Simulation(START)), CHANGES_ALONE))
    say(f"          simulating alone: {CHANGES_ALONE / (time.monotonic() - started):,.0f} changes/s")
    schema = schema_text(data_file("schemas/wikimedia-value.avsc"))
    encode = encoder(SchemaRegistry(settings.registry), "wikimedia", schema)
    started = time.monotonic()
    edits = [edit_event(orjson.loads(text)) for text in texts]
    say(f"          reading their JSON alone: {CHANGES_ALONE / (time.monotonic() - started):,.0f} changes/s")
    started = time.monotonic()
    for edit in edits:
        encode(edit)
    say(f"          encoding alone: {CHANGES_ALONE / (time.monotonic() - started):,.0f} changes/s")


def measure_pipeline(settings: Settings) -> None:
    """Runs --once over what is there, in a process of its own and three times in this one; then reads it as batches."""
    own = another_home(settings)
    command = [*ME, "run", QUERY, "--once"]
    seconds = seconds_of(lambda: subprocess.run(command, env=environment(own), check=True, stderr=subprocess.DEVNULL))
    say(f"pipeline, start included, {QUERY} and dead letters: {CHANGES / seconds:,.0f} changes/s ({seconds:.1f} s)")
    from pipeline.domains.wikimedia import CHANGES as SUBJECT
    from pipeline.domains.wikimedia import changes, edits, queries
    from pipeline.formats.schema_book import SchemaBook
    from pipeline.running.runner import Runner
    from pipeline.sources.kafka import records_from
    from pipeline.spark.session import spark_session

    spark = spark_session(settings)
    stats = [query for query in queries(settings) if query.name == QUERY]
    for what in ("first in its process", "warm", "warm, again"):
        runner = Runner(spark, another_home(settings), once=True)
        seconds = seconds_of(lambda runner=runner: runner.run(stats))
        say(f"pipeline, {what}, {QUERY} alone: {CHANGES / seconds:,.0f} changes/s ({seconds:.1f} s)")
    records = records_from(spark, settings, {"subscribe": "wikimedia"})
    schemas = SchemaBook.of_registry(settings).of(SUBJECT)
    parts: dict[str, DataFrame] = {
        "raw Kafka read": records,
        "the fields that edits use": edits(records, schemas, settings.future),
        "all fields": changes(records, schemas),
    }
    for what, frame in parts.items():
        seconds = min(seconds_of(frame.write.format("noop").mode("overwrite").save) for _ in range(3))
        say(f"decoding, batch, warm, {what}: {CHANGES / seconds:,.0f} changes/s ({seconds:.1f} s)")
    spark.stop()


def another_home(settings: Settings) -> Settings:
    """The same platform, with checkpoints and tables in a folder that nobody has used."""
    return replace(settings, home=Path(tempfile.mkdtemp(prefix="streamgauge-bench-")))


def seconds_of(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


if __name__ == "__main__":
    main()
