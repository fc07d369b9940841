"""Compaction of an archive that a stream has written: the same rows for every reader, at every moment, also when it is cut off."""

import os
import time
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.dataset as ds
import pytest

from pipeline.lake.archive_compaction import clear, compact, log_of
from pipeline.lake.tables import LakeTable
from pipeline.verification.archive import Archive
from streamgauge.errors import StreamgaugeError

SCHEMA = "id long, more string"


class Cut(BaseException):
    """What a kill is to the code: nothing of it runs any more."""


class Written:
    """An archive in `folder`, of a file of JSON a batch."""

    def __init__(self, spark, home):
        self.spark, self.folder, self.home, self.batches = spark, home / "lake" / "numbers", home, 0

    @property
    def scratch(self):
        return self.home / "lake" / ".compaction" / "numbers"

    def write(self, batches, schema=SCHEMA):
        source = self.home / "source"
        source.mkdir(exist_ok=True)
        for _ in range(batches):
            lines = [f'{{"id": {self.batches * 10 + number}, "more": "x"}}' for number in range(10)]
            (source / f"{self.batches:03}.json").write_text("\n".join(lines))
            os.utime(source / f"{self.batches:03}.json", (1_700_000_000 + self.batches,) * 2)
            self.batches += 1
        stream = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(source))
        writer = (
            stream.selectExpr("*", "concat('2026-01-0', 1 + id % 2) as date").coalesce(1).writeStream.format("parquet").partitionBy("date")
        )
        writer = writer.option("path", str(self.folder)).option("checkpointLocation", str(self.home / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def compact(self):
        return compact(self.folder, self.spark, self.scratch)

    def readers(self):
        """The rows as (id, date), by each kind of reader; some go by the log, some list the folder."""
        rows = self.spark.read.parquet(str(self.folder)).select("id", "date").collect()
        archive = Archive(self.spark, self.folder, self.spark.read.parquet(str(self.folder)).schema)
        frame = pd.read_parquet(self.folder)
        table = ds.dataset(self.folder, format="parquet", partitioning="hive").to_table()
        listed = duckdb.sql(f"select id, date from read_parquet('{self.folder}/**/*.parquet', hive_partitioning=true)").fetchall()
        assert archive.gone() == []
        return {
            "Spark": sorted((row.id, str(row.date)) for row in rows),
            "verify": sorted((row.id, str(row.date)) for row in archive.rows().collect()),
            "pandas": sorted(zip(frame["id"], frame["date"].astype(str), strict=True)),
            "pyarrow": sorted(zip(table["id"].to_pylist(), table["date"].to_pylist(), strict=True)),
            "DuckDB": sorted((number, str(date)) for number, date in listed),
        }

    def expected(self):
        return [(number, f"2026-01-0{1 + number % 2}") for number in range(self.batches * 10)]

    def check(self):
        for reader, rows in self.readers().items():
            assert rows == self.expected(), reader


@pytest.fixture
def archive(spark, tmp_path):
    return Written(spark, tmp_path)


def test_every_reader_has_the_same_rows_and_the_stream_goes_on(archive):
    archive.write(11, schema="id long")
    assert len(log_of(archive.folder).live()) == 22
    assert archive.compact() == 20, "those of the first ten batches, which the log's summary names"
    assert len(log_of(archive.folder).live()) == 4
    archive.check()
    archive.write(10)
    archive.check()
    assert archive.compact() == 22
    assert len(log_of(archive.folder).live()) == 4
    archive.check()
    mores = archive.spark.read.option("mergeSchema", "true").parquet(str(archive.folder)).groupBy("more").count().collect()
    assert {row.more: row["count"] for row in mores} == {None: 110, "x": 100}, "columns that came later are kept, too"
    assert archive.compact() == 0
    archive.write(9)
    archive.check()


def test_types_are_as_the_stream_wrote_them(archive):
    archive.write(10)
    before = archive.spark.read.parquet(str(archive.folder)).schema
    archive.compact()
    assert archive.spark.read.parquet(str(archive.folder)).schema == before


def test_before_the_first_summary_there_is_nothing_to_do(archive):
    archive.write(3)
    assert archive.compact() == 0
    archive.check()


def counted(monkeypatch, cut_at):
    """Lets `cut_at` steps that change the disk happen, and cuts off before the next; returns the count of those that were done."""
    done = []

    def before(step, real):
        def patched(*arguments, **options):
            if len(done) == cut_at:
                raise Cut
            done.append(step)
            return real(*arguments, **options)

        return patched

    monkeypatch.setattr(os, "fsync", before("fsync", os.fsync))
    monkeypatch.setattr(os, "utime", before("utime", os.utime))
    monkeypatch.setattr(Path, "replace", before("replace", Path.replace))
    monkeypatch.setattr(Path, "unlink", before("unlink", Path.unlink))
    return done


def test_cut_off_at_any_step_every_reader_has_the_same_rows_and_the_next_round_ends_it(archive):
    archive.write(11)
    cut_at, is_through = 0, False
    while not is_through:
        with pytest.MonkeyPatch.context() as patch:
            done = counted(patch, cut_at)
            try:
                archive.compact()
                is_through = True
            except Cut:
                pass
        archive.check()
        cut_at += 1
    assert len(done) < cut_at - 1, "after the last cut, the switch was made already"
    assert cut_at > 8
    assert len(log_of(archive.folder).live()) == 4
    hidden = list(archive.folder.rglob("*.compacted"))
    assert len(hidden) > 2
    assert clear(archive.folder, retain_seconds=3600) == 0, "a reader that began before may need them"
    time.sleep(0.1)
    assert clear(archive.folder, retain_seconds=0.05) == len(hidden) - 2
    archive.check()
    archive.write(10)
    archive.check()


def test_a_reader_that_began_before_ends_with_all_rows(archive):
    archive.write(10)
    began = archive.spark.read.parquet(str(archive.folder))
    began.count()
    archive.compact()
    clear(archive.folder, retain_seconds=3600)
    archive.write(10)
    archive.compact()
    assert began.count() == 100


def test_a_day_that_was_deleted_by_hand_stays_told_and_the_others_are_compacted(archive):
    archive.write(10)
    schema = archive.spark.read.parquet(str(archive.folder)).schema
    for path in (archive.folder / "date=2026-01-01").glob("*.parquet"):
        path.unlink()
    assert archive.compact() == 10
    with pytest.raises(StreamgaugeError, match=r"table numbers in .* cannot be read: .*") as told:
        LakeTable("numbers", archive.folder, "parquet").rows(archive.spark)
    assert len(str(told.value).splitlines()) == 1
    rows = Archive(archive.spark, archive.folder, schema)
    assert len(rows.gone()) == 10
    assert sorted(row.id for row in rows.rows().collect()) == list(range(1, 100, 2))
