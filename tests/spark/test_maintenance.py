"""Maintenance of a Delta table: fewer files, equal rows, nothing deleted too early, also beside a stream that writes it."""

import os
import re
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from running import eventually

from infrastructure.errors import StreamgaugeError
from pipeline.lake.maintenance import maintain_delta
from pipeline.lake.tables import LakeTable
from pipeline.sinks import conflicts

pytestmark = pytest.mark.delta

DAY = 86_400


@pytest.fixture
def table(spark, tmp_path):
    """A Delta table of three files, in as many versions."""
    for number in range(3):
        spark.range(number * 10, number * 10 + 10).coalesce(1).write.format("delta").mode("append").save(str(tmp_path / "it`s a table"))
    return LakeTable("numbers", tmp_path / "it`s a table", "delta")


def numbers(table, spark, **options):
    return sorted(row.id for row in spark.read.format("delta").options(**options).load(str(table.path)).collect())


def current_bytes(table, spark):
    files = spark.read.format("delta").load(str(table.path)).inputFiles()
    return sum(Path(unquote(urlsplit(uri).path)).stat().st_size for uri in files)


def test_fewer_files_hold_the_same_rows_and_earlier_versions_stay_until_a_short_retention_deletes_them(spark, table):
    before = current_bytes(table, spark)
    report = maintain_delta(table, spark, 7 * DAY)
    assert re.sub(r", [\d.]+ (bytes|kB)", "", report) == "numbers (delta): current files 3 -> 1"
    assert current_bytes(table, spark) < before
    assert numbers(table, spark) == list(range(30))
    assert numbers(table, spark, versionAsOf=1) == list(range(20))
    versions = len(list((table.path / "_delta_log").glob("*.json")))
    maintain_delta(table, spark, 0.001)
    assert len(list(table.path.glob("*.parquet"))) == 1
    assert numbers(table, spark) == list(range(30))
    assert len(list((table.path / "_delta_log").glob("*.json"))) == versions, "a round with nothing to compact writes nothing"
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled") == "true", "for one VACUUM only"


@pytest.fixture
def rewritten(spark, tmp_path, monkeypatch):
    """A table of two files, and a writer without Spark who deletes its rows while OPTIMIZE waits for a core to read them with."""
    table, seen, sql = LakeTable("contested", tmp_path / "contested", "delta"), [], spark.sql

    def write(mode):
        spark.range(100).repartition(2).write.format("delta").mode(mode).save(str(table.path))

    @contextmanager
    def all_cores_taken():
        gate = tmp_path / f"gate-{len(seen)}"
        cores = spark.sparkContext.defaultParallelism
        taken = threading.Thread(target=lambda: spark.sparkContext.parallelize(range(cores), cores).foreach(until_there(str(gate))))
        taken.start()
        eventually(lambda: running_tasks(spark) == cores, "all cores to be taken")
        try:
            yield gate
        finally:
            gate.touch()
            taken.join()

    def delete_meanwhile(gate):
        try:
            eventually(lambda: len(spark.sparkContext.statusTracker().getActiveJobsIds()) > 1, "OPTIMIZE to want to read the table")
            DeltaTable(table.path).delete()
        finally:
            gate.touch()

    def optimized(statement, times):
        if not statement.startswith("OPTIMIZE") or len(seen) == times:
            return sql(statement)
        with all_cores_taken() as gate:
            somebody = threading.Thread(target=delete_meanwhile, args=[gate])
            somebody.start()
            try:
                return sql(statement)
            except PySparkException as error:
                seen.append(str(error).split("]")[0].removeprefix("["))
                raise
            finally:
                somebody.join()
                if 0 < len(seen) < times:
                    write("append")

    def times(number):
        write("overwrite")
        monkeypatch.setattr(spark, "sql", lambda statement: optimized(statement, number))
        return table, seen

    return times


def until_there(path):
    """A task that keeps its core until there is a file `path`."""

    def wait(_):
        while not os.path.exists(path):  # noqa: PTH110 - executors have no pathlib loaded
            time.sleep(0.02)

    return wait


def running_tasks(spark):
    tracker = spark.sparkContext.statusTracker()
    return sum(stage.numActiveTasks for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)))


def test_a_writer_that_changes_the_same_files_meanwhile_makes_it_begin_anew(spark, rewritten):
    table, seen = rewritten(1)
    report = maintain_delta(table, spark, 7 * DAY)
    assert [name.startswith("DELTA_CONCURRENT_") for name in seen] == [True], seen
    assert re.search(r"current files 2, .* -> 0, 0 bytes", report), "the deletion should stand"


def test_a_writer_that_always_changes_the_same_files_is_told_after_the_last_attempt(spark, rewritten, monkeypatch):
    monkeypatch.setattr(conflicts, "ATTEMPTS", 2)
    table, seen = rewritten(2)
    with pytest.raises(StreamgaugeError, match=r"contested: .* 2 attempts .*DELTA_"):
        maintain_delta(table, spark, 7 * DAY)
    assert len(seen) == 2


def test_beside_a_stream_that_writes_no_row_is_lost_and_none_comes_twice(spark, tmp_path):
    table = LakeTable("rated", tmp_path / "rated", "delta")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 2).load().select("value")
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream = writer.trigger(processingTime="300 milliseconds").start(str(table.path))

    def another_batch():
        after = (stream.lastProgress or {"batchId": 0})["batchId"] + 1
        eventually(lambda: not stream.isActive or (stream.lastProgress or {"batchId": 0})["batchId"] >= after, "another batch")
        assert stream.isActive, stream.exception()

    try:
        another_batch()
        maintain_delta(table, spark, 3600)
        another_batch()
    finally:
        stream.stop()
    found = sorted(row.value for row in spark.read.format("delta").load(str(table.path)).collect())
    assert found == list(range(len(found)))
    assert found
    assert "OPTIMIZE" in {row.operation for row in spark.sql(f"describe history delta.`{table.path}`").collect()}


def test_a_table_that_cannot_be_read_is_one_clear_line(spark, tmp_path):
    (tmp_path / "broken" / "_delta_log").mkdir(parents=True)
    (tmp_path / "broken" / "_delta_log" / f"{0:020}.json").write_text("no JSON")
    with pytest.raises(StreamgaugeError, match=r"\bbroken\b.*Spark") as told:
        maintain_delta(LakeTable("broken", tmp_path / "broken", "delta"), spark, 7 * DAY)
    assert len(str(told.value).splitlines()) == 1
