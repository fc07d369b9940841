"""A query, and how it runs as a stream from its source to its sink. Queries are data; the runner starts all of them the same way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from contract.checkpoints.contents import Checkpoint, Partition
from contract.checkpoints.names import CONSOLE, REAL_TIME, CheckpointName
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.formats.confluent_avro import Subject, WriterSchemas
from pipeline.sinks.console import Console
from pipeline.sinks.sink import Sink
from pipeline.sources.files import Files
from pipeline.sources.kafka import RECORD_SCHEMA, KafkaTopic
from pipeline.sources.static_tables import StaticTable, fields_of
from pipeline.sources.watermarks import Watermark, shares, united, with_watermark
from pipeline.spark.session import REAL_TIME_CONFIG, TIMER_STATE, session_config

OutputMode = Literal["append", "update", "complete"]


def unchanged(rows: DataFrame) -> DataFrame:
    return rows


@dataclass(frozen=True)
class Query:
    """A query from a source (a topic or a folder of files) to a sink.

    Rows pass from `source` through `decode`, `watermark` if set, and `transform`. These steps are lazy and free of side effects, so a batch
    that runs again on the same records gives the same rows.

    decode: records (columns of sources.kafka.RECORD), and WriterSchemas if `subject` is set -> rows. It must keep `topic`, `partition` and
    `offset` if `watermark` is set.
    transform: rows, static tables -> result rows for the sink.
    has_timers: whether `transform` ends in transformWithState, which needs another state store.
    subject: the schema registry subject of the source's values, if they are Avro in the Confluent wire format.
    static_tables: the tables that `transform` joins.
    trigger_seconds: the interval between the starts of two micro-batches. The next one starts immediately if a batch takes longer.
    on_request: `streamgauge run` without names, and so the demo, leaves the query out.
    real_time: how often the query writes a checkpoint in Spark's real-time mode, e.g. "30 seconds"; None for micro-batches.
    version: part of the checkpoint's path. Increase it when the query's state changes.
    """

    name: str
    source: KafkaTopic | Files
    decode: Callable[..., DataFrame]
    sink: Sink
    mode: OutputMode = "append"
    transform: Callable[..., DataFrame] = unchanged
    has_timers: bool = False
    subject: Subject | None = None
    watermark: Watermark | None = None
    static_tables: tuple[StaticTable, ...] = ()
    trigger_seconds: float = 0
    on_request: bool = False
    real_time: str | None = None
    version: int = 1

    @property
    def checkpoint_name(self) -> CheckpointName:
        """The checkpoint's name; each version and mode has its own."""
        return CheckpointName(self.name, self.version, REAL_TIME if self.real_time else self.mode)

    @property
    def parameters(self) -> dict[str, str | int]:
        """What settings decide of `transform`, such as the length of a window: a state with other parameters does not fit."""
        keywords = self.transform.keywords if isinstance(self.transform, partial) else {}
        return {name: value for name, value in keywords.items() if isinstance(value, str | int)}

    @property
    def names_in_all_modes(self) -> set[CheckpointName]:
        """The names of its checkpoint in each mode: two processes that ran it in different ones would write the same rows."""
        return {CheckpointName(self.name, self.version, mode) for mode in (*get_args(OutputMode), REAL_TIME)}

    def on_console(self) -> "Query":
        """The query with a console sink. Its own name gives it its own checkpoint, so printing does not affect the original query."""
        return replace(self.in_mode(self.mode), name=f"{self.name}{CONSOLE}", sink=Console(self.name))

    def in_mode(self, mode: OutputMode) -> "Query":
        """The query in micro-batches, in an output mode."""
        source = replace(self.source, reader=None) if isinstance(self.source, KafkaTopic) else self.source
        return replace(self, mode=mode, source=source, real_time=None)

    def columns(self, spark: SparkSession) -> T.StructType:
        """The columns of the result. Reads nothing."""
        schemas = WriterSchemas(self.subject.schema) if self.subject else None
        nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in fields_of(RECORD_SCHEMA)]
        records = spark.readStream.format("rate").load().select(*nothing)  # a stream, for a transform with timers
        tables = (spark.createDataFrame([], fields_of(table.schema)) for table in self.static_tables)
        return self.transform(self.decoded(records, schemas), *tables).schema

    def decoded(self, records: DataFrame, schemas: WriterSchemas | None = None) -> DataFrame:
        """The rows of `records`. schemas: for a query with a subject."""
        return self.decode(records) if schemas is None else self.decode(records, schemas)

    def transformed(self, rows: DataFrame, settings: Settings) -> DataFrame:
        """The result rows of decoded `rows`. settings: those that may name files for its static tables."""
        return self.transform(rows, *(table.load(rows.sparkSession, settings) for table in self.static_tables))


def start_stream(
    query: Query, spark: SparkSession, settings: Settings, partitions: Sequence[Partition], schemas: WriterSchemas | None, *, once: bool
) -> StreamingQuery:
    """Starts `query` from its checkpoint: reads records, decodes them, sets the watermark, transforms the rows, and writes them.

    partitions: those of the source. schemas: for a query with a subject. once: it processes the available records and ends.
    Raises StreamgaugeError when Spark does not support the query in its mode.
    """
    folder = query.checkpoint_name.folder(settings)
    checkpoint = Checkpoint(folder)
    # From a checkpoint of real-time mode, one batch takes all: docs/explained/checkpoints.md.
    if once and isinstance(query.source, KafkaTopic) and (query.real_time is None or checkpoint.query_id is None):
        query = replace(query, source=replace(query.source, reader=None))
    if (topic := topic_read_by_partition(query)) and query.watermark:
        streams = topic.streams(spark, settings, shares(partitions, checkpoint.partitions))
        rows = united([query.decoded(records, schemas) for records in streams], query.watermark, settings)
    else:
        rows = query.decoded(query.source.stream(spark, settings), schemas)
        if query.watermark:
            rows = with_watermark(rows, query.watermark, settings, partitions, checkpoint.sources)
    writer = query.sink.writer(query.transformed(rows, settings), settings)
    writer = writer.queryName(query.name).outputMode(query.mode).option("checkpointLocation", str(folder))
    if once:
        writer = writer.trigger(availableNow=True)
    elif query.real_time:
        writer = writer.trigger(realTime=query.real_time)  # type: ignore[call-overload] # its overloads lack it
    else:
        writer = writer.trigger(processingTime=f"{round(max(query.trigger_seconds, settings.trigger_seconds) * 1000)} milliseconds")
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
    try:
        with session_config(spark, REAL_TIME_CONFIG if query.real_time else TIMER_STATE if query.has_timers else {}):
            return writer.start()
    except AnalysisException as error:
        msg = f"query {query.name} cannot run in mode {query.mode}: {str(error).splitlines()[0]}"
        raise StreamgaugeError(msg) from error


def topic_read_by_partition(query: Query) -> KafkaTopic | None:
    """The query's topic, if each partition is a source with its own watermark: in real-time mode, a union cannot use one source twice."""
    source = query.source
    return source if query.real_time is not None and query.watermark is not None and isinstance(source, KafkaTopic) else None
