"""The definition of a query. Queries are data; the runner starts all of them the same way."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from contract.checkpoints.names import REAL_TIME, CheckpointName
from pipeline.formats.confluent_avro import Subject, WriterSchemas
from pipeline.sinks.console import Console
from pipeline.sinks.sink import Sink
from pipeline.sources.files import Files
from pipeline.sources.kafka import RECORD_SCHEMA
from pipeline.sources.static_tables import StaticTable
from pipeline.sources.topic import KafkaTopic

OutputMode = Literal["append", "update", "complete"]


def unchanged(rows: DataFrame) -> DataFrame:
    """Returns `rows`."""
    return rows


@dataclass(frozen=True)
class Query:
    """A query from a source (a topic or a folder of files) to a sink.

    Rows pass from `source` through `decode`, a watermark on `event_time` if set, and `transform`. These steps are lazy and free of side
    effects, so a batch that runs again on the same records gives the same rows.

    decode: records (columns of sources.kafka.RECORD), and WriterSchemas if `subject` is set -> rows. It must keep `topic`, `partition` and
    `offset` if `event_time` is set.
    transform: rows, static tables -> result rows for the sink.
    subject: the schema registry subject of the source's values, if they are Avro in the Confluent wire format.
    event_time: the column for the watermark.
    watermark: how late a row may be, e.g. "60 seconds"; None uses the setting for all queries.
    skew: how far an idle partition can hold the watermark back; None uses the setting for all queries.
    has_timers: whether `transform` ends in transformWithState. A batch of it takes one more argument, `until_ms`: the watermark, in ms since
    1970, up to which timers have fired.
    on_request: `streamgauge run` without names, and so the demo, leaves the query out.
    real_time: how often the query writes a checkpoint in Spark's real-time mode, e.g. "10 seconds"; None for micro-batches.
    version: part of the checkpoint's path. Increase it when the query's state changes.
    static_tables: the tables that `transform` joins.
    trigger_seconds: the interval between the starts of two micro-batches. The next one starts immediately if a batch takes longer.
    """

    name: str
    source: KafkaTopic | Files
    decode: Callable[..., DataFrame]
    sink: Sink
    mode: OutputMode = "append"
    transform: Callable[..., DataFrame] = unchanged
    subject: Subject | None = None
    event_time: str | None = None
    watermark: str | None = None
    skew: str | None = None
    has_timers: bool = False
    static_tables: tuple[StaticTable, ...] = ()
    trigger_seconds: float = 0
    on_request: bool = False
    real_time: str | None = None
    version: int = 1

    @property
    def checkpoint_name(self) -> CheckpointName:
        """The checkpoint's name; each version and mode has its own."""
        return CheckpointName(self.name, self.version, REAL_TIME if self.real_time else self.mode)

    def on_console(self) -> "Query":
        """The query with a console sink. Its own name gives it its own checkpoint, so printing does not affect the original query."""
        return replace(self, name=f"{self.name}-console", sink=Console(self.name))

    def columns(self, spark: SparkSession) -> T.StructType:
        """The columns of the result. Reads nothing."""
        schemas = WriterSchemas(self.subject.schema) if self.subject else None
        return self.result(spark.createDataFrame([], RECORD_SCHEMA), schemas).schema

    def result(self, records: DataFrame, schemas: WriterSchemas | None = None) -> DataFrame:
        """The result rows of a batch of `records`; of a query with timers, their columns only. schemas: for a query with a subject."""
        return self.transformed(self.decoded(records, schemas), 0 if self.has_timers else None)

    def decoded(self, records: DataFrame, schemas: WriterSchemas | None) -> DataFrame:
        """The first half of `result`: `records` decoded into rows."""
        return self.decode(records) if schemas is None else self.decode(records, schemas)

    def transformed(self, rows: DataFrame, until_ms: int | None = None) -> DataFrame:
        """The second half of `result`: `rows` transformed, with the static tables. until_ms: for a batch of a query with timers."""
        tables = [table.load(rows.sparkSession) for table in self.static_tables]
        return self.transform(rows, *tables, **({} if until_ms is None else {"until_ms": until_ms}))
