"""A query as a batch: the same decode and transform as its stream, over a fixed range of offsets."""

from pyspark.sql import DataFrame, SparkSession

from contract.errors import StreamgaugeError
from contract.registry.client import SchemaRegistry
from contract.settings import Settings
from pipeline.formats.confluent_avro import SchemaBook
from pipeline.query import Query
from pipeline.sources.topic import KafkaTopic
from pipeline.spark.errors import SparkFailure, first_line


def batch_rows(query: Query, spark: SparkSession, settings: Settings, ends: str = "latest") -> DataFrame:
    """The result rows of the records from settings.starting_offsets up to, not including, `ends` (JSON of topic, partition and offset).

    A batch has no watermark: it also counts events that came too late for the stream. Raises StreamgaugeError for a query that reads files,
    for offsets that Spark does not take, and when Kafka or the schema registry cannot be reached.
    """
    if not isinstance(query.source, KafkaTopic):
        msg = (
            f"query {query.name} reads {query.source.name}, and --batch reads a range of offsets of a topic; unset STREAMGAUGE_NEST_SOURCE"
        )
        raise StreamgaugeError(msg)
    query.source.partitions(settings)  # fail fast: Spark would try for minutes
    schemas = None if query.subject is None else SchemaBook(SchemaRegistry(settings.registry)).of(query.subject)
    try:
        rows = query.result(query.source.batch_from(spark, settings, settings.starting_offsets, ends), schemas).localCheckpoint()
    except SparkFailure as error:
        msg = f'the batch from {settings.starting_offsets} to {ends} failed: {first_line(error)}; offsets are JSON as Spark takes it, for every partition: {{"nest-logs": {{"0": 100, "1": -1, "2": -1}}}}, where -1 is the end and -2 the beginning'
        raise StreamgaugeError(msg) from error
    return rows
