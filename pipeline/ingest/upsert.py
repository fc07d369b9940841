"""The queries of an ingested topic, and the sink that merges batches of records into a Delta table.

With a row per key, older records never replace newer ones, and deletions are remembered. With a row per record, its partition and offset
identify it. So a batch that runs twice, or late, changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath
from pipeline.ingest.json_types import (
    ORIGIN,
    RESERVED,
    AmbiguousNames,
    Resolve,
    TooManyFields,
    TypeChanged,
    as_double_or_text,
    as_text,
    check_size,
    is_retyped,
    paths,
    retyped,
    widened,
    with_doubles_of,
    without_new_fields,
)
from pipeline.ingest.location import Location, TableSchema, ingested_by, locations, query_name, table_name
from pipeline.ingest.records import newest, observed_type, parsed, types_of_records, unrounded_type, unusable, usable
from pipeline.query import Query, unchanged
from pipeline.sinks.conflicts import retried
from pipeline.sinks.dead_letters import DeadLetterTopic
from pipeline.sinks.sink import Deletion, Sink, deletion_of_table
from pipeline.sources.kafka import KafkaTopic

if HAS_DELTA:
    from delta.tables import DeltaTable

_BY_KEY = "target.kafka_key = source.kafka_key"
_BY_RECORD = "target.kafka_partition = source.kafka_partition AND target.kafka_offset = source.kafka_offset"
BATCHES_PER_COMPACTION = 50
_MISFITS = (TypeChanged, TooManyFields, AmbiguousNames)
_SPECIAL = set(" ,;{}()\n\t=")
_QUOTED_NOTHING = "``"
"""The name of no characters, in a path."""


@dataclass(frozen=True)
class UpsertTable(Sink):
    """A Delta table with the newest record of each key of `topic`, of which a tombstone deletes the row; or with all its records.

    debug: use the separate table of `ingest --debug`.
    """

    topic: str
    debug: bool = False

    @property
    def place(self) -> str:
        return f"lake/{table_name(self.topic, debug=self.debug)}"

    def location(self, settings: Settings) -> Location:
        return Location.of(self.topic, settings, debug=self.debug)

    def writer(self, records: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer that merges records (columns of sources.kafka.RECORD) in micro-batches, and compacts the table from time to time."""
        location = self.location(settings)

        def write(batch: DataFrame, number: int) -> None:
            merge(batch, location, take_new_fields=settings.take_new_fields)
            if (number + 1) % BATCHES_PER_COMPACTION == 0:
                compact(batch.sparkSession, location)

        return records.writeStream.foreachBatch(write)

    def deletions(self, settings: Settings) -> list[Deletion]:
        location = self.location(settings)
        return [deletion for path in (location.table, location.deletions, location.schema) for deletion in deletion_of_table(path)]

    def delta_table(self, settings: Settings) -> StoragePath:
        return self.location(settings).table


def queries_of(topic: str, *, debug: bool = False, append: bool = False) -> tuple[Query, ...]:
    """The queries of `streamgauge ingest`, the one that writes the table first. With `debug`, there are no dead letters. append: see Location."""
    source, name = KafkaTopic(topic), query_name(topic, debug=debug)
    upserts = Query(name, source=source, decode=unchanged, sink=UpsertTable(topic, debug), mode="append")
    letters = Query(
        f"{name}-dead-letters",
        source=source,
        decode=partial(unusable, reader=name, append=append),
        sink=DeadLetterTopic(reader=name),
        mode="append",
        trigger_seconds=5,
    )
    return (upserts,) if debug else (upserts, letters)


def ingests(settings: Settings) -> tuple[Query, ...]:
    """The queries of all topics that have been ingested here."""
    return tuple(
        query for location in locations(settings) for query in queries_of(location.topic, debug=location.debug, append=location.append)
    )


def ingest_named(name: str) -> Query | None:
    """The query of an ingest that has this name, whether or not its table is still there. None if no ingest has one."""
    ingested = ingested_by(name)
    return next((query for query in queries_of(ingested[0], debug=ingested[1]) if query.name == name), None) if ingested else None


def merge(records: DataFrame, location: Location, *, take_new_fields: bool) -> None:
    """Merges `records` into the table. Begins anew when OPTIMIZE has changed the same files meanwhile.

    take_new_fields: whether new fields become columns; if not, the schema lists them as ignored.
    Raises TypeChanged, TooManyFields and AmbiguousNames, and then writes nothing.
    """
    records, merge_once = usable(records, append=location.append).persist(), _append_batch if location.append else _merge_batch
    try:
        retried(lambda: merge_once(records, location, take_new_fields=take_new_fields))
    finally:
        records.unpersist()


def compact(spark: SparkSession, location: Location) -> None:
    """Packs small files of the table into larger ones. In an object store, only the query itself can do so while it runs."""
    for path in (str(location.table), str(location.deletions)):
        if DeltaTable.isDeltaTable(spark, path):
            retried(partial(spark.sql, f"OPTIMIZE delta.{_quoted(path)}"))


def learned(records: DataFrame, location: Location, *, take_new_fields: bool, change_types: bool = False) -> TableSchema:
    """The table's schema, extended by the documents of `records` (as returned by `newest` or `usable`), and saved.

    change_types: whether columns that documents do not fit get a type that fits both these and the rows of the table.
    Raises TypeChanged, TooManyFields and AmbiguousNames, with the first record that does not fit.
    """
    before, observed = TableSchema.read(location.schema), observed_type(records)
    schema = before or TableSchema(location.topic, T.StructType(), append=location.append)
    take_new_fields = take_new_fields or not schema.columns.fields
    if observed is not None:
        try:
            unrounded = unrounded_type(records)
            with_new = partial(_with_new, schema, observed, unrounded, take_new_fields=take_new_fields)
            schema = _with_types_changed(with_new, records.sparkSession, location) if change_types else with_new()
        except _MISFITS as error:
            msg = f"{error}{_first_misfit(records, schema, take_new_fields=take_new_fields)}; {_way_out(error, location)}"
            raise type(error)(msg) from error
    if schema != before:
        schema.write(location.schema)
    return schema


def shaped(spark: SparkSession, location: Location, columns: T.StructType) -> None:
    """Creates the table, adds missing columns to it, or rewrites it with the types that the columns have now.

    Delta could widen a type without that, but not every reader of Delta, such as delta-rs, can read the table then.
    """
    path, wanted = str(location.table), T.StructType([*ORIGIN, *columns])
    is_there = DeltaTable.isDeltaTable(spark, path)
    has = spark.read.format("delta").load(path) if is_there else None
    if has is not None and set(paths(has.schema)) >= set(paths(wanted)) and not is_retyped(has.schema, wanted):
        return
    if is_there and _has_special_names(wanted):
        # Parquet does not allow these names, or its readers make up others, so column mapping uses others in the files. Not all Delta readers support column mapping.
        spark.sql(f"ALTER TABLE delta.`{path.replace('`', '``')}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    if has is not None and is_retyped(has.schema, wanted):
        typed = has.select(
            *(retyped(F.col(_quoted(field.name)), field.dataType, wanted[field.name].dataType).alias(field.name) for field in has.schema)
        )
        typed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    writer = spark.createDataFrame([], wanted).write.format("delta").mode("append").option("mergeSchema", "true")
    if not is_there and _has_special_names(wanted):
        writer = writer.option("delta.columnMapping.mode", "name")
    writer.save(path)


def _with_types_changed(with_new: Callable[..., TableSchema], spark: SparkSession, location: Location) -> TableSchema:
    schema = with_new(resolve=as_double_or_text)
    if DeltaTable.isDeltaTable(spark, str(location.table)):
        table = spark.read.format("delta").load(str(location.table))
        doubles = with_doubles_of(T.StructType([*ORIGIN, *schema.columns]), table.schema)
        kept = F.struct(*(F.col(_quoted(name)) for name in table.columns))
        if not table.where(~kept.cast(doubles).try_cast(table.schema).eqNullSafe(kept)).isEmpty():
            return with_new(resolve=as_text)
    return schema


def _with_new(
    before: TableSchema,
    observed: T.StructType,
    unrounded: T.StructType | None,
    *,
    take_new_fields: bool,
    resolve: Resolve | None = None,
) -> TableSchema:
    kept_as_text = dict(before.kept_as_text)
    wider = widened(before.columns, observed, kept_as_text, unrounded, resolve)
    if take_new_fields:
        check_size(wider)
        return replace(before, columns=wider, kept_as_text=kept_as_text, ignored=())
    known = set(paths(before.columns))
    return replace(
        before,
        columns=without_new_fields(wider, before.columns),
        kept_as_text=before.kept_as_text | {path: why for path, why in kept_as_text.items() if path in known},
        ignored=tuple(sorted({*before.ignored, *(path for path in paths(wider) if path not in known)})),
    )


def _first_misfit(records: DataFrame, schema: TableSchema, *, take_new_fields: bool) -> str:
    """Where the first record is that does not fit by itself; empty if only all together do not."""
    for observed, unrounded, place in types_of_records(records):
        try:
            _with_new(schema, observed, unrounded, take_new_fields=take_new_fields)
        except _MISFITS:
            return f" (as in the record of {place})"
    return ""


def _way_out(error: StreamgaugeError, location: Location) -> str:
    if isinstance(error, TypeChanged):
        return f"`streamgauge ingest {location.topic}{' --debug' * location.debug} --infer-schema` gives the column a type that fits both, and keeps all rows"
    return "nothing of the batch was written"


def _merge_batch(records: DataFrame, location: Location, *, take_new_fields: bool) -> None:
    newest_records = newest(records, _earlier(records, location)).persist()
    try:
        columns = learned(newest_records, location, take_new_fields=take_new_fields).columns
        shaped(newest_records.sparkSession, location, columns)
        _remember(newest_records, location)
        _merge(parsed(newest_records, columns), location, columns)
    finally:
        newest_records.unpersist()


def _append_batch(records: DataFrame, location: Location, *, take_new_fields: bool) -> None:
    columns = learned(records, location, take_new_fields=take_new_fields).columns
    shaped(records.sparkSession, location, columns)
    first_offsets = records.groupBy("kafka_partition").agg(F.min("kafka_offset").alias("first")).collect()
    if not first_offsets:
        return
    # Only files with such offsets are read, which are few, however large the table is.
    may_be_there = " OR ".join(
        f"(target.kafka_partition = {row.kafka_partition} AND target.kafka_offset >= {row.first})" for row in first_offsets
    )
    _target(records.sparkSession, location).merge(
        parsed(records, columns).alias("source"), f"{_BY_RECORD} AND ({may_be_there})"
    ).whenNotMatchedInsert(values=_values(columns)).execute()


def _earlier(records: DataFrame, location: Location) -> DataFrame | None:
    """The earlier records of the keys in `records`, for `newest`; None if there are none."""
    spark = records.sparkSession
    paths = [path for path in map(str, (location.table, location.deletions)) if DeltaTable.isDeltaTable(spark, path)]
    if not paths:
        return None
    current = reduce(DataFrame.unionByName, (spark.read.format("delta").load(path).select(*RESERVED) for path in paths))
    return current.join(records, "kafka_key", how="left_semi")


def _remember(newest_records: DataFrame, location: Location) -> None:
    """Stores what the table cannot: deletions, and the `latest` of records with an earlier timestamp.

    It runs before the table changes. A batch that fails in between runs again and completes the merge.
    """
    not_in_table = newest_records.where(F.col("document").isNull() | (F.col("latest") > F.col("kafka_timestamp")))
    if not_in_table.isEmpty():
        return
    spark, path = newest_records.sparkSession, str(location.deletions)
    if not DeltaTable.isDeltaTable(spark, path):
        spark.createDataFrame([], ORIGIN).write.format("delta").save(path)
    source = not_in_table.withColumn("kafka_timestamp", F.col("latest")).select(*RESERVED)
    DeltaTable.forPath(spark, path).alias("target").merge(
        source.alias("source"), _BY_KEY
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _merge(source: DataFrame, location: Location, columns: T.StructType) -> None:
    is_deletion, values = F.col("source.document").isNull(), _values(columns)
    (
        _target(source.sparkSession, location)
        .merge(source.alias("source"), _BY_KEY)
        .whenMatchedDelete(is_deletion)
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~is_deletion, values)
        .execute()
    )


def _target(spark: SparkSession, location: Location) -> "DeltaTable":
    return DeltaTable.forPath(spark, str(location.table)).alias("target")


def _values(columns: T.StructType) -> dict[str, Column]:
    """The columns of a row, from a source as returned by `parsed`."""
    fields = {_quoted(field.name): F.col("source.document")[field.name] for field in columns}
    return {**{name: F.col(f"source.{name}") for name in RESERVED}, **fields}


def _has_special_names(columns: T.StructType) -> bool:
    return any(set(path) & _SPECIAL or path.endswith(_QUOTED_NOTHING) for path in paths(columns))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
