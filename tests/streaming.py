"""A query as a stream, batch by batch: events with explicit times in, rows out. No server runs, and a batch takes a fraction of a second.

    def test_a_person_seen_too_late_counts_nowhere(spark, tmp_path):
        stream = Stream(spark, CAMERA_STATS, tmp_path)
        in_time, too_late = stream.run([seen("cam-1", at("11:00"))], [seen("cam-2", at("10:49"))])
        assert (in_time.dropped, too_late.dropped) == (0, 1)
        assert too_late.rows == []

What runs is the query's own decode, watermark and transform, in its own output mode, as a Spark stream with a checkpoint. Left out are its
source and its sink: the records are in files, one a batch, and the rows of each batch are collected.
"""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from contract.checkpoints.contents import Checkpoint
from infrastructure.kafka.result_table import ResultTable
from infrastructure.settings import Settings
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.monitoring.failures import PYTHON_IS_SLOW
from pipeline.monitoring.measures import measures
from pipeline.query import Query
from pipeline.sinks.topics import AlertsTopic, CompactedTopic
from pipeline.sources.kafka import RECORD_SCHEMA
from pipeline.sources.watermarks import with_watermark
from pipeline.spark.session import TIMER_STATE, session_config

STARTS = 10
"""How often a query is started whose Python processes are too slow to start: Spark waits 10 s for each."""
Row = dict[str, Any]
Value = bytes | Mapping[str, Any] | None

_ARROW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("clock", pa.timestamp("us", tz="UTC")),
    ]
)
_CONFIG = {
    # One task a shuffle: a second one would cost more than so few rows.
    "spark.sql.shuffle.partitions": "1",
    # The harness has a batch without records of its own after each batch, so that the numbers of Spark's batches follow from the files.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}


def at(time: str) -> datetime:
    """A time on 2026-01-01, UTC, as "10:59" or "10:59:30"."""
    return datetime.fromisoformat(f"2026-01-01T{time}").replace(tzinfo=UTC)


@dataclass(frozen=True)
class Record:
    """A record of the source.

    value: bytes, or what becomes JSON. topic: the query's source if left out. timestamp: Kafka's, and the record's clock if that is left out.
    """

    value: Value
    partition: int = 0
    topic: str | None = None
    timestamp: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    key: bytes | None = None
    clock: datetime | None = None


@dataclass(frozen=True)
class Batch:
    """What became of a batch.

    rows: those that the query wrote, in order of their keys where the sink has keys: as its topic holds them in JSON, or with the columns as
    they are for any other sink; {} for a tombstone. dropped: how many rows came too late. watermark: after the batch; None before the first event.
    timers: how many wait after the batch, as the pipeline publishes it; None for a query without.
    """

    rows: list[Row]
    dropped: int
    watermark: datetime | None
    timers: int | None


class Stream:
    """A query on records that a test gives it batch by batch, with a checkpoint that outlives each run.

    A stream rests after each batch: one without records follows. So what a batch does to the watermark has happened before the next one: its
    windows are closed, and what is older is too late. A stream that never rests drops rows by the watermark of one batch earlier.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: Query,
        folder: Path,
        *,
        partitions: int = 1,
        settings: Settings | None = None,
        schemas: WriterSchemas | None = None,
    ) -> None:
        """partitions: of the source's topic. settings: for the watermark. schemas: of the values, for a query with a subject."""
        self._spark, self._query, self._settings, self._schemas = spark, query, settings or Settings(), schemas
        self._partitions = [(query.source.name, number) for number in range(partitions)]
        self._files, self.checkpoint = folder / "records", folder / "checkpoint"
        self._files.mkdir(parents=True)
        self._written, self._next_offsets = 0, Counter[tuple[str, int]]()
        self._numbers: list[list[int]] = []
        self._table = ResultTable()

    def run(self, *batches: Sequence[Record | Value], rests: bool = True) -> list[Batch]:
        """Starts the query from its checkpoint, lets it take `batches`, and returns what became of each.

        A batch is a list of records; one that is only a value is in partition 0. A batch that has to run again, see `lose_last_commit`, comes first.
        rests: after each batch, or else after the last one only.
        """
        for number, batch in enumerate(batches, start=1):
            self._numbers.append([self._written])
            self._write([record if isinstance(record, Record) else Record(record) for record in batch])
            if rests or number == len(batches):
                self._numbers[-1].append(self._written)
                self._write([])
        found: dict[int, list[Row]] = {}
        for start in range(1, STARTS + 1):
            running = self._ended(found)
            if (failure := running.exception()) is None:
                break
            if not any(sign in str(failure) for sign in PYTHON_IS_SLOW):  # the runner restarts it too
                raise failure
            if start == STARTS:
                msg = f"Spark's Python processes were too slow to start, {STARTS} times: this machine is too busy; run the test again when it is less so"
                raise TimeoutError(msg) from failure
        told = {progress["batchId"]: measures(json.loads(progress.json), datetime.now(UTC), {}) for progress in running.recentProgress}
        first = min(found, default=self._written)
        return [_batch(numbers, found, told) for numbers in self._numbers if numbers[0] >= first]

    def change(self, settings: Settings | None = None, **changes: Any) -> None:
        """Changes the query, or its settings; the next run goes on from the same checkpoint."""
        self._query, self._settings = replace(self._query, **changes), settings or self._settings

    @property
    def table(self) -> list[Row]:
        """The rows of the result topic so far: the last value of each key. For a sink with keys."""
        return self._table.rows()

    def lose_last_commit(self) -> None:
        """As after a kill in the last batch: its rows were written and Spark does not know. The next run begins with it."""
        last = self._written - 2
        rested = last + 1
        lost = [f"commits/{last}", f"commits/{rested}", f"offsets/{rested}", f"sources/*/{rested}", f"sources/*/{rested}.compact"]
        for path in [path for pattern in lost for path in self.checkpoint.glob(pattern)]:
            path.unlink()

    def _ended(self, found: dict[int, list[Row]]) -> StreamingQuery:
        """A run that has ended. How many batches it remembers is a setting of the session, not of its copy."""
        with session_config(self._spark, {**_CONFIG, **(TIMER_STATE if self._query.has_timers else {})}):
            writer = self._rows().writeStream.foreachBatch(lambda rows, number: found.update({number: self._taken(rows)}))
            writer = writer.outputMode(self._query.mode).option("checkpointLocation", str(self.checkpoint))
            running = writer.trigger(availableNow=True).start()
            with contextlib.suppress(StreamingQueryException):
                running.awaitTermination()
        return running

    def _rows(self) -> DataFrame:
        files = self._spark.readStream.schema(RECORD_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self._files))
        rows = self._query.decoded(files, self._schemas)
        if self._query.watermark:
            sources = Checkpoint(self.checkpoint).sources
            rows = with_watermark(rows, self._query.watermark, self._settings, self._partitions, sources)
        rows = self._query.transformed(rows, self._settings)
        match self._query.sink:
            case (CompactedTopic() | AlertsTopic()) as sink:
                return sink.records(rows).select("key", "value")
        return rows

    def _taken(self, rows: DataFrame) -> list[Row]:
        """The rows of a batch; those with keys are brought into the table too."""
        if rows.columns != ["key", "value"]:
            return [row.asDict(recursive=True) for row in rows.collect()]
        keyed = sorted(((row.key.encode(), row.value and row.value.encode()) for row in rows.collect()), key=itemgetter(0))
        for key, value in keyed:
            self._table.apply(key, value)
        return [orjson.loads(value) if value else {} for _, value in keyed]

    def _write(self, records: Sequence[Record]) -> None:
        """A file of `records`: Spark takes one a batch, in order of the times at which they were changed."""
        rows = []
        for record in records:
            topic = record.topic or self._query.source.name
            value = orjson.dumps(record.value) if isinstance(record.value, Mapping) else record.value
            offset = self._next_offsets[topic, record.partition]
            self._next_offsets[topic, record.partition] += 1
            rows.append((record.key, value, topic, record.partition, offset, record.timestamp, record.clock or record.timestamp))
        path = self._files / f"{self._written:06}.parquet"
        parquet.write_table(pa.Table.from_pylist([dict(zip(_ARROW_SCHEMA.names, row, strict=True)) for row in rows], _ARROW_SCHEMA), path)
        self._written += 1
        os.utime(path, (self._written, self._written))


def write_table(rows: DataFrame, folder: Path) -> None:
    """Writes `rows` to an archive, by a stream."""
    source = folder.with_name(f"_{folder.name}")
    rows.write.parquet(f"{source}/rows")
    stream = rows.sparkSession.readStream.schema(rows.schema).parquet(f"{source}/rows").writeStream.format("parquet")
    stream.option("checkpointLocation", f"{source}/checkpoint").trigger(availableNow=True).start(str(folder)).awaitTermination()


def plan_of_stream(rows: DataFrame, folder: Path) -> str:
    """The physical plan of a stream of `rows` in update mode, once a batch had records. folder: for its checkpoint."""
    writer = rows.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(folder / "checkpoint"))
    running, plan = writer.start(), ""
    try:
        while "MicroBatchScan" not in plan and running.isActive:
            execution = running._jsq.streamingQuery().lastExecution()
            plan = "" if execution is None else execution.executedPlan().toString()
    finally:
        running.stop()
    assert running.exception() is None
    return plan


def _batch(numbers: Sequence[int], found: Mapping[int, list[Row]], told: Mapping[int, Mapping[str, Any]]) -> Batch:
    """A batch that Spark ran under these numbers, the second of which is that of the rest. The next one begins with the watermark after it."""
    watermark, operators = told[numbers[0] + 1]["watermark"], told[numbers[-1]]["state_operators"]
    return Batch(
        rows=[row for one in numbers for row in found[one]],
        dropped=sum(told[one]["rows_dropped_by_watermark"] for one in numbers),
        watermark=datetime.fromisoformat(watermark) if watermark else None,
        timers=next((operator["timers"] for operator in operators), None),
    )
