"""The sink of an ingested topic: batches of records, merged into a Delta table.

An older record never replaces a newer one, and deletions are remembered, so a batch that runs twice, or one that comes late, changes nothing.
"""

from dataclasses import dataclass, replace

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pipeline.ingest.json_types import RESERVED, Notes, TypeChanged, paths, settled, widened
from pipeline.ingest.location import Location, TableSchema
from pipeline.ingest.records import is_newer, newest, parsed, seen_type
from streamgauge.settings import Settings

ORIGIN = T.StructType(
    [
        T.StructField(name, kind)
        for name, kind in zip(RESERVED, (T.StringType(), T.IntegerType(), T.LongType(), T.TimestampType()), strict=True)
    ]
)
"""Columns of the table besides the fields."""
_BY_KEY = "held.kafka_key = come.kafka_key"
_SPECIAL = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class UpsertTable:
    """A Delta table that holds the newest record of each key of `topic`; a record with a null value deletes the row."""

    topic: str

    def writer(self, records: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of records (columns of sources.RECORD), which it merges a batch at a time."""
        location = Location.of(self.topic, settings)
        return records.writeStream.foreachBatch(lambda batch, _: merge(batch, location, take_new_fields=settings.take_new_fields))


def merge(records: DataFrame, location: Location, *, take_new_fields: bool) -> None:
    """Brings the table up to `records`. take_new_fields: new fields become columns; otherwise the schema notes them, and they are left out.

    Raises TypeChanged and AmbiguousNames, with nothing written.
    """
    spark, found = records.sparkSession, newest(records).persist()
    try:
        columns = learned(found, location, take_new_fields=take_new_fields).columns
        shaped(spark, location, columns)
        deleted = found.where(F.col("document").isNull()).select(*RESERVED)
        if not deleted.isEmpty():
            _remember(deleted, location)
        _merge(parsed(_still_new(found, location), columns), location, columns)
    finally:
        found.unpersist()


def learned(found: DataFrame, location: Location, *, take_new_fields: bool) -> TableSchema:
    """The table's schema, with what the documents of `found` (as `newest` returns it) add to it; it is kept.

    Raises TypeChanged and AmbiguousNames.
    """
    known, seen = TableSchema.read(location.schema), seen_type(found)
    schema = known or TableSchema(location.topic, T.StructType())
    if seen is None:
        pass
    elif known is None or not known.columns.fields:
        notes = Notes()
        schema = TableSchema(location.topic, settled(seen, notes), notes)
    else:
        try:
            schema = _with_new(known, seen, take_new_fields=take_new_fields)
        except TypeChanged as error:
            msg = f"{error}; a table keeps its types: `streamgauge reset ingest-{location.topic}`, then ingest again, makes it anew with types that take all of it"
            raise TypeChanged(msg) from error
    if schema != known:
        schema.write(location.schema)
    return schema


def shaped(spark: SparkSession, location: Location, columns: T.StructType) -> None:
    """Creates the table, or gives it the columns that it lacks."""
    path, wanted = str(location.table), T.StructType([*ORIGIN, *columns])
    is_there = DeltaTable.isDeltaTable(spark, path)
    has = spark.read.format("delta").load(path).schema if is_there else None
    if has is not None and set(paths(has)) >= set(paths(wanted)):
        return
    writer = spark.createDataFrame([], wanted).write.format("delta").mode("append").option("mergeSchema", "true")
    if any(set(path) & _SPECIAL for path in paths(wanted)):
        # Parquet takes no such names; columns then have others in the files. Not every reader of Delta knows how, so only where it must be.
        if is_there:
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        else:
            writer = writer.option("delta.columnMapping.mode", "name")
    writer.save(path)


def _with_new(known: TableSchema, seen: T.StructType, *, take_new_fields: bool) -> TableSchema:
    notes = Notes(dict(known.notes.kept_as_text), [])
    wider = widened(known.columns, seen, notes)
    if take_new_fields:
        return TableSchema(
            known.topic,
            wider,
            replace(notes, without_column=sorted({*known.notes.without_column, *notes.without_column} - set(paths(wider)))),
        )
    new = [path for path in paths(wider) if path not in set(paths(known.columns))]
    return replace(known, ignored=tuple(sorted({*known.ignored, *new})))


def _remember(deleted: DataFrame, location: Location) -> None:
    """Before the rows go: cut off in between, the batch that is run again finds them and deletes them."""
    spark, path = deleted.sparkSession, str(location.deletions)
    if not DeltaTable.isDeltaTable(spark, path):
        spark.createDataFrame([], ORIGIN).write.format("delta").save(path)
    held = DeltaTable.forPath(spark, path).alias("held")
    held.merge(deleted.alias("come"), _BY_KEY).whenMatchedUpdateAll(is_newer("come", "held")).whenNotMatchedInsertAll().execute()


def _still_new(found: DataFrame, location: Location) -> DataFrame:
    """Without records that are older than the deletion of their key."""
    spark = found.sparkSession
    if not DeltaTable.isDeltaTable(spark, str(location.deletions)):
        return found
    deletions = spark.read.format("delta").load(str(location.deletions))
    is_outdated = F.col("gone.kafka_key").isNotNull() & is_newer("gone", "come")
    joined = found.alias("come").join(deletions.alias("gone"), F.col("come.kafka_key") == F.col("gone.kafka_key"), how="left")
    return joined.where(~is_outdated).select("come.*")


def _merge(come: DataFrame, location: Location, columns: T.StructType) -> None:
    origin = {name: F.col(f"come.{name}") for name in RESERVED}
    fields = {f"`{one.name.replace('`', '``')}`": F.col("come.document")[one.name] for one in columns}
    held = DeltaTable.forPath(come.sparkSession, str(location.table)).alias("held")
    is_deletion = F.col("come.document").isNull()
    (
        held.merge(come.alias("come"), _BY_KEY)
        .whenMatchedDelete(is_deletion & is_newer("come", "held"))
        .whenMatchedUpdate(is_newer("come", "held"), {**origin, **fields})
        .whenNotMatchedInsert(~is_deletion, {**origin, **fields})
        .execute()
    )
