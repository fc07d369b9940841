"""The queries that carry result topics into tables of the database.

They read the topics, and not the queries that write them: so a database that is away holds up nothing else, and one that is added later
receives every row.
"""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.database.keyed_table import IS_DELETED, KEY_CHARACTERS
from pipeline.database.sink import OFFSET, DatabaseTable
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.lake.tables import table_name
from pipeline.query import Query
from pipeline.sinks.topics import CompactedAvroTopic, CompactedTopic
from pipeline.sources.topic import KafkaTopic

_NUL, _REPLACEMENT = "\0", "\ufffd"


def in_database(writer: Query) -> Query:
    """The query that keeps a table of the compacted topic that `writer` writes to. Raises TypeError for another sink."""
    sink = writer.sink
    if not isinstance(sink, CompactedTopic):
        raise TypeError(sink)
    name = f"{writer.name}-database"
    key = tuple(column for part in sink.key for column in (("window_start", "window_end") if part == "window" else (part,)))
    return Query(
        name,
        source=KafkaTopic(sink.topic.name, is_table=True),
        decode=partial(changes, writer=writer, topic=sink),
        sink=DatabaseTable(name, table_name([sink.topic.name]), key),
        mode="append",
        subject=sink.subject if isinstance(sink, CompactedAvroTopic) else None,
        on_request=writer.on_request,
        trigger_seconds=5,
        version=writer.version,
    )


def changes(records: DataFrame, schemas: WriterSchemas | None = None, *, writer: Query, topic: CompactedTopic) -> DataFrame:
    """The records of the topic as changes of a table.

    records: columns of sources.kafka.RECORD, with values written by `schemas` if they are Avro.
    Returns IS_DELETED, OFFSET, and the columns of the result of `writer`, with `window` as window_start and window_end. PostgreSQL takes no
    NUL in a text, so it becomes U+FFFD; a text in the key is cut at KEY_CHARACTERS. Evaluation fails for a value that is not a row.
    """
    columns = writer.columns(records.sparkSession)
    key_columns = T.StructType([columns[name] for name in topic.key])
    key = F.from_json(F.col("key").cast("string"), key_columns, {"mode": "FAILFAST"})
    row = F.when(F.col("value").isNotNull(), topic.row(columns, schemas))
    both = records.select(F.col("value").isNull().alias(IS_DELETED), F.col("offset").alias(OFFSET), key.alias("key"), row.alias("row"))
    found: dict[str, Column] = {}
    for one in columns:
        is_key = one.name in topic.key
        value = F.col("key" if is_key else "row")[one.name]
        if one.name == "window":
            found |= {f"window_{edge}": value[edge] for edge in ("start", "end")}
        elif isinstance(one.dataType, T.StringType):
            text = F.translate(value, _NUL, _REPLACEMENT)
            found[one.name] = F.substring(text, 1, KEY_CHARACTERS) if is_key else text
        else:
            found[one.name] = value
    return both.select(IS_DELETED, OFFSET, *(column.alias(name) for name, column in found.items()))
