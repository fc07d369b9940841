"""The queries of an ingested topic, and the sink that merges batches of records into a Delta table.

Older records never replace newer ones, and deletions are remembered, so a batch that runs twice, or late, changes nothing.
"""

from dataclasses import dataclass, replace
from functools import partial, reduce

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.settings import Settings
from contract.storage.paths import StoragePath
from pipeline.ingest.json_types import ORIGIN, RESERVED, TypeChanged, paths, widened
from pipeline.ingest.location import Location, TableSchema, locations, query_name, table_name
from pipeline.ingest.records import newest, parsed, seen_type, unusable, usable
from pipeline.query import Query, unchanged
from pipeline.sinks.sink import Deletion, Sink, deletion_of_table
from pipeline.sinks.topics import DeadLetterTopic
from pipeline.sources.topic import KafkaTopic

_BY_KEY = "target.kafka_key = source.kafka_key"
_SPECIAL = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class UpsertTable(Sink):
    """A Delta table with the newest record of each key of `topic`; a tombstone deletes the row.

    debug: use the separate table of `ingest --debug`.
    """

    topic: str
    debug: bool = False

    @property
    def place(self) -> str:
        """The folder in the lake."""
        return f"lake/{table_name(self.topic, debug=self.debug)}"

    def location(self, settings: Settings) -> Location:
        """The location of the table."""
        return Location.of(self.topic, settings, debug=self.debug)

    def writer(self, records: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer that merges records (columns of sources.kafka.RECORD) in micro-batches."""
        location = self.location(settings)
        return records.writeStream.foreachBatch(lambda batch, _: merge(batch, location, take_new_fields=settings.take_new_fields))

    def deletions(self, settings: Settings) -> list[Deletion]:
        """The table, its remembered deletions, and its schema."""
        location = self.location(settings)
        return [deletion for path in (location.table, location.deletions, location.schema) for deletion in deletion_of_table(path)]

    def delta_table(self, settings: Settings) -> StoragePath:
        """The table."""
        return self.location(settings).table


def queries_of(topic: str, *, debug: bool = False) -> tuple[Query, ...]:
    """The queries of `streamgauge ingest`, the one that writes the table first. With `debug`, there are no dead letters."""
    source, name = KafkaTopic(topic), query_name(topic, debug=debug)
    upserts = Query(name, source=source, decode=unchanged, sink=UpsertTable(topic, debug), mode="append")
    letters = Query(
        f"{name}-dead-letters",
        source=source,
        decode=partial(unusable, reader=name),
        sink=DeadLetterTopic(reader=name),
        mode="append",
        trigger_seconds=5,
    )
    return (upserts,) if debug else (upserts, letters)


def ingests(settings: Settings) -> tuple[Query, ...]:
    """The queries of all topics that have been ingested here."""
    return tuple(query for location in locations(settings) for query in queries_of(location.topic, debug=location.debug))


def merge(records: DataFrame, location: Location, *, take_new_fields: bool) -> None:
    """Merges `records` into the table.

    take_new_fields: whether new fields become columns; if not, the schema lists them as ignored.
    Raises TypeChanged and AmbiguousNames, and then writes nothing.
    """
    records = usable(records).persist()
    found = newest(records, _known(records, location)).persist()
    try:
        columns = learned(found, location, take_new_fields=take_new_fields).columns
        shaped(found.sparkSession, location, columns)
        _remember(found, location)
        _merge(parsed(found, columns), location, columns)
    finally:
        found.unpersist()
        records.unpersist()


def learned(found: DataFrame, location: Location, *, take_new_fields: bool) -> TableSchema:
    """The table's schema, extended by the documents of `found` (as returned by `newest`), and saved.

    Raises TypeChanged and AmbiguousNames.
    """
    known, seen = TableSchema.read(location.schema), seen_type(found)
    schema = known or TableSchema(location.topic, T.StructType())
    if seen is not None:
        try:
            schema = _with_new(schema, seen, take_new_fields=take_new_fields or not schema.columns.fields)
        except TypeChanged as error:
            msg = f"{error}; the types of a table do not change; `streamgauge reset {location.query}` and another ingest create it again with types that fit all records"
            raise TypeChanged(msg) from error
    if schema != known:
        schema.write(location.schema)
    return schema


def shaped(spark: SparkSession, location: Location, columns: T.StructType) -> None:
    """Creates the table, or adds missing columns to it."""
    path, wanted = str(location.table), T.StructType([*ORIGIN, *columns])
    is_there = DeltaTable.isDeltaTable(spark, path)
    has = spark.read.format("delta").load(path).schema if is_there else None
    if has is not None and set(paths(has)) >= set(paths(wanted)):
        return
    writer = spark.createDataFrame([], wanted).write.format("delta").mode("append").option("mergeSchema", "true")
    if any(set(path) & _SPECIAL for path in paths(wanted)):
        # Parquet does not allow these names, so column mapping uses others in the files. Not all Delta readers support column mapping.
        if is_there:
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        else:
            writer = writer.option("delta.columnMapping.mode", "name")
    writer.save(path)


def _with_new(known: TableSchema, seen: T.StructType, *, take_new_fields: bool) -> TableSchema:
    kept_as_text = dict(known.kept_as_text)
    wider = widened(known.columns, seen, kept_as_text)
    if take_new_fields:
        return TableSchema(known.topic, wider, kept_as_text)
    new = [path for path in paths(wider) if path not in set(paths(known.columns))]
    return replace(known, ignored=tuple(sorted({*known.ignored, *new})))


def _known(records: DataFrame, location: Location) -> DataFrame | None:
    """The earlier records of the keys in `records`, for `newest`; None if there are none."""
    spark = records.sparkSession
    paths = [path for path in map(str, (location.table, location.deletions)) if DeltaTable.isDeltaTable(spark, path)]
    if not paths:
        return None
    current = reduce(DataFrame.unionByName, (spark.read.format("delta").load(path).select(*RESERVED) for path in paths))
    return current.join(records, "kafka_key", how="left_semi")


def _remember(found: DataFrame, location: Location) -> None:
    """Stores what the table cannot: deletions, and the `latest` of records with an earlier timestamp.

    It runs before the table changes. A batch that fails in between runs again and completes the merge.
    """
    not_in_table = found.where(F.col("document").isNull() | (F.col("latest") > F.col("kafka_timestamp")))
    if not_in_table.isEmpty():
        return
    spark, path = found.sparkSession, str(location.deletions)
    if not DeltaTable.isDeltaTable(spark, path):
        spark.createDataFrame([], ORIGIN).write.format("delta").save(path)
    source = not_in_table.withColumn("kafka_timestamp", F.col("latest")).select(*RESERVED)
    DeltaTable.forPath(spark, path).alias("target").merge(
        source.alias("source"), _BY_KEY
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _merge(source: DataFrame, location: Location, columns: T.StructType) -> None:
    origin = {name: F.col(f"source.{name}") for name in RESERVED}
    fields = {f"`{one.name.replace('`', '``')}`": F.col("source.document")[one.name] for one in columns}
    target = DeltaTable.forPath(source.sparkSession, str(location.table)).alias("target")
    is_deletion = F.col("source.document").isNull()
    (
        target.merge(source.alias("source"), _BY_KEY)
        .whenMatchedDelete(is_deletion)
        .whenMatchedUpdate(set={**origin, **fields})
        .whenNotMatchedInsert(~is_deletion, {**origin, **fields})
        .execute()
    )
