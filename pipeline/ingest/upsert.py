"""The sink of an ingested topic: batches of records, merged into a Delta table.

An older record never replaces a newer one, and deletions are remembered, so a batch that runs twice, or one that comes late, changes nothing.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.settings import Settings
from contract.storage.paths import StoragePath
from pipeline.ingest.json_types import RESERVED, Notes, TypeChanged, paths, settled, widened
from pipeline.ingest.location import Location, TableSchema, table_name
from pipeline.ingest.records import newest, parsed, seen_type, usable
from pipeline.sinks.sink import Deletion, Sink, deletion_of_table

if TYPE_CHECKING:
    from pipeline.verification.check import Check
    from pipeline.verification.outcome import Outcome

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
class UpsertTable(Sink):
    """A Delta table that holds the newest record of each key of `topic`; a record with a null value deletes the row.

    debug: the table is the one that `ingest --debug` has for itself.
    """

    topic: str
    debug: bool = False

    @property
    def place(self) -> str:
        """The folder in the lake."""
        return f"lake/{table_name(self.topic, debug=self.debug)}"

    def location(self, settings: Settings) -> Location:
        """Where the table is."""
        return Location.of(self.topic, settings, debug=self.debug)

    def writer(self, records: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of records (columns of sources.kafka.RECORD), which it merges a batch at a time."""
        location = self.location(settings)
        return records.writeStream.foreachBatch(lambda batch, _: merge(batch, location, take_new_fields=settings.take_new_fields))

    def verify(self, check: "Check") -> "Outcome":
        """Compares the row of each key with the newest record."""
        from pipeline.verification.upserts import verify

        return verify(check, self.location(check.settings))

    def deletions(self, settings: Settings) -> list[Deletion]:
        """The table, the deletions that it remembers, and its schema."""
        location = self.location(settings)
        return [deletion for path in (location.table, location.deletions, location.schema) for deletion in deletion_of_table(path)]

    def delta_table(self, settings: Settings) -> StoragePath:
        """The table."""
        return self.location(settings).table


def merge(records: DataFrame, location: Location, *, take_new_fields: bool) -> None:
    """Brings the table up to `records`. take_new_fields: new fields become columns; otherwise the schema notes them, and they are left out.

    Raises TypeChanged and AmbiguousNames, with nothing written.
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
            msg = f"{error}; a table keeps its types: `streamgauge reset {location.query}`, then ingest again, creates it again with types that take all of it"
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


def _known(records: DataFrame, location: Location) -> DataFrame | None:
    """What `newest` is to know of the records before, for the keys of `records`."""
    spark = records.sparkSession
    paths = [path for path in map(str, (location.table, location.deletions)) if DeltaTable.isDeltaTable(spark, path)]
    if not paths:
        return None
    held = reduce(DataFrame.unionByName, (spark.read.format("delta").load(path).select(*RESERVED) for path in paths))
    return held.join(records, "kafka_key", how="left_semi")


def _remember(found: DataFrame, location: Location) -> None:
    """Keeps what the table does not tell: deletions, and the `latest` of records whose timestamp is earlier.

    It does so before the table changes: a batch that is cut off in between runs again, and does the rest.
    """
    untold = found.where(F.col("document").isNull() | (F.col("latest") > F.col("kafka_timestamp")))
    if untold.isEmpty():
        return
    spark, path = found.sparkSession, str(location.deletions)
    if not DeltaTable.isDeltaTable(spark, path):
        spark.createDataFrame([], ORIGIN).write.format("delta").save(path)
    come = untold.withColumn("kafka_timestamp", F.col("latest")).select(*RESERVED)
    DeltaTable.forPath(spark, path).alias("held").merge(
        come.alias("come"), _BY_KEY
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _merge(come: DataFrame, location: Location, columns: T.StructType) -> None:
    origin = {name: F.col(f"come.{name}") for name in RESERVED}
    fields = {f"`{one.name.replace('`', '``')}`": F.col("come.document")[one.name] for one in columns}
    held = DeltaTable.forPath(come.sparkSession, str(location.table)).alias("held")
    is_deletion = F.col("come.document").isNull()
    (
        held.merge(come.alias("come"), _BY_KEY)
        .whenMatchedDelete(is_deletion)
        .whenMatchedUpdate(set={**origin, **fields})
        .whenNotMatchedInsert(~is_deletion, {**origin, **fields})
        .execute()
    )
