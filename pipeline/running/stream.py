"""A query as Spark runs it, from its source to its sink."""

from collections.abc import Sequence
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from contract.checkpoints.contents import Checkpoint, Partition
from contract.errors import StreamgaugeError
from contract.settings import Settings
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.query import Query
from pipeline.sources.kafka import ORIGIN
from pipeline.sources.topic import KafkaTopic
from pipeline.sources.watermarks import shares, with_partition_watermarks
from pipeline.spark.session import REAL_TIME_STATE, TIMER_STATE, session_config


def started(
    query: Query, spark: SparkSession, settings: Settings, partitions: Sequence[Partition], schemas: WriterSchemas | None, *, once: bool
) -> StreamingQuery:
    """Starts `query` from its checkpoint: reads records, decodes them, sets the watermark, transforms the rows, and writes them.

    partitions: those of the source. schemas: for a query with a subject. once: it processes the available records and ends.
    Raises StreamgaugeError when Spark does not support the query in its mode.
    """
    folder = query.checkpoint_name.folder(settings)
    if topic := sources_of_partitions(query):
        streams = topic.streams(spark, settings, shares(partitions, Checkpoint(folder).partitions))
        rows = united(query, [query.decoded(records, schemas) for records in streams], settings)
    else:
        rows = query.decoded(query.source.stream(spark, settings), schemas)
        rows = with_watermark(query, rows, settings, partitions, Checkpoint(folder).sources)
    writer = query.sink.writer(query.transformed(rows), settings)
    writer = writer.queryName(query.name).outputMode(query.mode).option("checkpointLocation", str(folder))
    if once:
        writer = writer.trigger(availableNow=True)
    elif query.real_time:
        writer = writer.trigger(realTime=query.real_time)  # type: ignore[call-overload] # of Spark 4.3
    else:
        writer = writer.trigger(processingTime=f"{round(max(query.trigger_seconds, settings.trigger_seconds) * 1000)} milliseconds")
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
    try:
        with session_config(spark, REAL_TIME_STATE if query.real_time else TIMER_STATE if query.has_timers else {}):
            return writer.start()
    except AnalysisException as error:
        msg = f"query {query.name} cannot run in mode {query.mode}: {str(error).splitlines()[0]}"
        raise StreamgaugeError(msg) from error


def sources_of_partitions(query: Query) -> KafkaTopic | None:
    """The topic of which each partition is a source of its own, for its watermark: in real-time mode, Spark takes no source twice in a union."""
    source = query.source
    return source if query.real_time is not None and query.event_time is not None and isinstance(source, KafkaTopic) else None


def with_watermark(query: Query, rows: DataFrame, settings: Settings, partitions: Sequence[Partition], branches: int | None) -> DataFrame:
    """The decoded rows of all partitions, with the watermark of the query or of `settings`, if the query has an event time.

    branches: the number of sources in the checkpoint, see `with_partition_watermarks`; None for a new checkpoint.
    """
    if query.event_time is None:
        return rows
    delay, skew = query.watermark or settings.watermark, query.skew or settings.partition_skew
    return with_partition_watermarks(rows, query.event_time, delay=delay, skew=skew, partitions=partitions, branches=branches)


def united(query: Query, of_sources: Sequence[DataFrame], settings: Settings) -> DataFrame:
    """The decoded rows of each source, which has a watermark of its own; the last one is the query's."""
    delay = query.watermark or settings.watermark
    return reduce(DataFrame.union, [rows.withWatermark(str(query.event_time), delay).drop(*ORIGIN) for rows in of_sources])
