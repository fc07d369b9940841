"""Measures tables on this machine: `PYTHONPATH=tests python -m benchmarks.tables [ingest archive]`, both by default.

ingest   records/s of `streamgauge ingest`, of 200,000 over 20,000 keys, in 1, 10 and 50 batches; on a session that has done it once before;
         then the files of the table of 50 batches before and after maintenance
archive  an ad-hoc query over 100,000 Nest documents as JSON lines and over their archive; bytes of both
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from running import environment

from benchmarks.measuring import ME, fresh_platform, say, say_machine
from infrastructure.settings import Settings
from pipeline.catalog import chosen as queries_named
from pipeline.domains.nest import DOCUMENT
from pipeline.ingest.inference import infer
from pipeline.ingest.location import Location
from pipeline.ingest.upsert import queries_of
from pipeline.lake.maintenance import DELTA_RETENTION_SECONDS, maintain_delta
from pipeline.lake.tables import LakeTable
from pipeline.running.runner import Runner
from pipeline.sources.kafka import records_from
from pipeline.spark.session import spark_session

TOPIC, RECORDS, KEYS, BATCHES = "orders", 200_000, 20_000, (1, 1, 10, 50)
DOCUMENTS, TIMES = 100_000, 4


def main() -> None:
    """Prints a line a figure."""
    chosen = sys.argv[1:] or ["ingest", "archive"]
    say_machine()
    with fresh_platform() as settings:
        spark = spark_session(settings)
        if "ingest" in chosen:
            measure_ingest(spark, settings)
        if "archive" in chosen:
            measure_archive(spark, settings)
        spark.stop()


def measure_ingest(spark: SparkSession, settings: Settings) -> None:
    """Ingests the same topic into a new home each time; the first time warms the session up."""
    admin = settings.kafka.admin()
    admin.create_topics([NewTopic(TOPIC, 3)])[TOPIC].result(30)
    producer, rng = settings.kafka.producer({"queue.buffering.max.messages": 1_000_000}), random.Random(1)
    for number in range(RECORDS):
        order = {"n": number, "price": rng.random(), "customer": {"id": rng.randrange(1000), "name": "somebody"}, "lines": [{"item": "a"}]}
        producer.produce(TOPIC, json.dumps(order), f"order-{rng.randrange(KEYS)}")
        producer.poll(0)
    producer.flush(60)
    for attempt, batches in enumerate(BATCHES):
        own = replace(settings, home=Path(tempfile.mkdtemp(prefix="streamgauge-bench-")), max_offsets_per_trigger=-(-RECORDS // batches))
        list(infer(spark, Location.of(TOPIC, own), own))
        seconds = timed(lambda own=own: Runner(spark, own, once=True).run(queries_of(TOPIC)[:1]))  # type: ignore[misc]
        what = "the first of its process" if attempt == 0 else "warm"
        say(f"ingest, {batches} batches, {what}: {RECORDS / seconds:,.0f} records/s ({seconds:.1f} s, {seconds / batches:.1f} s a batch)")
    table = LakeTable(TOPIC, Location.of(TOPIC, own).table, "delta")
    seconds = timed(lambda: say(f"maintain: {maintain_delta(table, spark, DELTA_RETENTION_SECONDS)}"))
    say(f"maintain took {seconds:.1f} s")


def measure_archive(spark: SparkSession, settings: Settings) -> None:
    """People seen by camera, over the documents as JSON lines, and over the archive's columns: the same answer, the best of TIMES."""
    command = [*ME, "produce", "nest", "--unpaced", "--limit", str(DOCUMENTS), "--start", "2026-01-01T00:00:00Z"]
    subprocess.run(command, env=environment(settings), check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    Runner(spark, settings, once=True).run(queries_named(["nest-archive"], settings)[:1])
    raw, archive = settings.home / "raw", settings.lake / "nest" / "cameras"
    records_from(spark, settings, {"subscribe": "nest-logs"}).select(F.col("value").cast("string")).write.text(str(raw))

    def over_json() -> DataFrame:
        cameras = spark.read.schema(DOCUMENT).json(str(raw)).select(F.explode("devices.cameras").alias("id", "camera"))
        return people(cameras.select("camera.device_id", "camera.last_event"))

    def over_archive() -> DataFrame:
        return people(spark.read.parquet(str(archive)))

    answers = [sorted(map(tuple, frame().collect())) for frame in (over_json, over_archive)]
    if answers[0] != answers[1]:
        msg = "the two answers differ"
        raise AssertionError(msg)
    json_seconds, archive_seconds = (
        min(timed(lambda frame=frame: frame().collect()) for _ in range(TIMES)) for frame in (over_json, over_archive)
    )  # type: ignore[misc]
    say(
        f"ad-hoc query: JSON lines {json_seconds:.2f} s, archive {archive_seconds:.2f} s: {json_seconds / archive_seconds:.1f} times faster"
    )
    json_bytes, archive_bytes = (sum(path.stat().st_size for path in folder.rglob("part-*")) for folder in (raw, archive))
    say(f"size: JSON lines {json_bytes / 1e6:.1f} MB, archive {archive_bytes / 1e6:.1f} MB: {json_bytes / archive_bytes:.1f} times smaller")


def people(cameras: DataFrame) -> DataFrame:
    """Reports of a person, by camera."""
    return cameras.where("last_event.has_person").groupBy("device_id").count()


def timed(work: Callable[[], object]) -> float:
    """How many seconds it takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


if __name__ == "__main__":
    main()
