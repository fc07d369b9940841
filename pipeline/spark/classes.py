"""Saves the classes that Spark loads, so that it starts faster: runs a small stream in a process of its own, which lists them."""

import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812

from infrastructure.errors import StreamgaugeError
from infrastructure.java import class_data
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.settings import Settings
from infrastructure.storage.temporary import temporary_folder
from pipeline.spark.jvm import fixed_class_path, java
from pipeline.spark.session import spark_session


def save_classes(settings: Settings) -> None:
    """Creates the archive for Spark with these settings unless it exists. Raises StreamgaugeError if it cannot be created."""
    program, class_path = java(settings), fixed_class_path(settings)
    archive = class_data.archive_for(program, class_path, settings.cache)
    if archive.exists():
        return
    with tempfile.TemporaryDirectory(dir=temporary_folder(settings.home)) as folder:
        loaded = Path(folder) / "classes"
        stream = [sys.executable, "-P", "-m", "pipeline.spark.classes", folder, shlex.quote(f"-XX:DumpLoadedClassList={loaded}")]
        done = subprocess.run(stream, env=os.environ | settings.environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            msg = f"the stream whose classes are saved has failed: {done.stderr.strip()}"
            raise StreamgaugeError(msg)
        class_data.create(archive, program, class_path, loaded)


def run_stream(folder: Path, java_option: str) -> None:
    """Counts three equal rows of a file by window, without duplicates, and writes and reads a Delta table."""
    spark = spark_session(replace(Settings.from_environment(), home=folder / "home", lake_uri="", driver_java_options=java_option))
    source, table = folder / "source", str(folder / "table")
    table_format = "delta" if HAS_DELTA else "parquet"
    source.mkdir()
    (source / "rows.json").write_text('{"key": "a", "time": "2026-01-01T00:00:00Z"}\n' * 3)
    counts = (
        spark.readStream.schema("key string, time timestamp")
        .json(str(source))
        .withWatermark("time", "1 minute")
        .dropDuplicatesWithinWatermark(["key", "time"])
        .groupBy("key", F.window("time", "1 hour"))
        .agg(F.count("*").alias("count"), F.to_json(F.struct(F.max("time"))).alias("newest"))
    )
    query = (
        counts.writeStream.outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(lambda batch, _: batch.select("key", "count").write.format(table_format).mode("append").save(table))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "none").load()
    spark.read.format(table_format).load(table).groupBy("key").count().collect()
    spark.stop()


if __name__ == "__main__":
    run_stream(Path(sys.argv[1]), sys.argv[2])
