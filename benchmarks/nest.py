"""Measures the Nest domain on this machine: `PYTHONPATH=tests python -m benchmarks.nest [producer pipeline]`, both by default.

producer  documents/s into the broker, of 1,000,000 of about 1.6 kB
pipeline  documents/s from the earliest to the last result, with the start of the process, and warm; alone, and with the archive; beside the
          same records read by Spark alone, which does nothing with them
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from running import environment

from benchmarks.measuring import ME, fresh_platform, messages, say, say_machine
from contract.domains.nest import NEST_LOGS
from infrastructure.settings import Settings

DOCUMENTS = 1_000_000


def main() -> None:
    """Prints a line a figure."""
    say_machine()
    with fresh_platform() as settings:
        measure_producer(settings)
        if sys.argv[1:] != ["producer"]:
            measure_pipeline(settings)


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
        with tempfile.TemporaryDirectory() as folder:
            own = replace(settings, home=Path(folder))
            started = time.monotonic()
            subprocess.run([*ME, "run", *names, "--once"], env=environment(own), check=True, stderr=subprocess.DEVNULL)
            seconds = time.monotonic() - started
        say(f"pipeline, start included, {' and '.join(names)}, and dead letters: {DOCUMENTS / seconds:,.0f} documents/s ({seconds:.1f} s)")
    from pipeline.domains.nest import queries
    from pipeline.running.runner import Runner
    from pipeline.sources.kafka import stream_of_records
    from pipeline.spark.session import spark_session

    spark = spark_session(settings)
    stats = [query for query in queries(settings) if query.name == "nest-camera-stats"]

    def count(folder: str) -> None:
        Runner(spark, replace(settings, home=Path(folder)), once=True).run(stats)

    def read(folder: str) -> None:
        records = stream_of_records(spark, settings, {"subscribe": NEST_LOGS.name}).writeStream
        records.trigger(availableNow=True).option("checkpointLocation", folder).format("noop").start().awaitTermination()

    for what, work in (("nest-camera-stats alone, first in its process", count), *(("warm", count), ("records read alone", read)) * 2):
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            work(folder)
            seconds = time.monotonic() - started
        say(f"{what}: {DOCUMENTS / seconds:,.0f} documents/s ({seconds:.1f} s)")
    spark.stop()


if __name__ == "__main__":
    main()
