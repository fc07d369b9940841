"""Reports on an ingested topic: the table's location, the inferred schema, sample rows."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract.checkpoints.contents import Checkpoint
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath
from infrastructure.text import printable
from pipeline.ingest.json_types import is_retyped, paths
from pipeline.ingest.location import Location, TableSchema
from pipeline.ingest.records import newest, table_rows, usable
from pipeline.ingest.upsert import learned
from pipeline.sources.kafka import check_timestamps, records_from, source_partitions

SAMPLE_ROWS = 5


def introduce(location: Location, checkpoint: StoragePath) -> list[str]:
    """The locations of table, schema and checkpoint, one per line."""
    places = [f"table {location.name}: {location.table}", f"schema {location.schema}", f"checkpoint {checkpoint}"]
    if not location.debug:
        return places
    note = (
        f"these are for debugging: no other table changes, and no dead letter is written; `streamgauge reset {location.query}` deletes them"
    )
    return [*places, note]


def infer(spark: SparkSession, location: Location, settings: Settings, checkpoint: StoragePath) -> Iterator[str]:
    """Infers the schema from the records of a table, saves it, and yields a line for each change. Existing columns may get other types.

    Raises AmbiguousNames, and StreamgaugeError as check_timestamps, and for a topic without
    keys whose table is to have a row per key.
    """
    check_timestamps(settings, dict.fromkeys(source_partitions(settings, location.topic), 0))
    before = TableSchema.read(location.schema)
    if before is None and not location.append:
        _check_keys(records_from(spark, settings, {"subscribe": location.topic}), location)
    records = _records_of_table(spark, location, settings)
    if before is not None and not location.append:  # the record that stops the query may have been replaced by a newer one
        records = records.unionByName(_of_batch_under_way(spark, location, settings, checkpoint))
    after = learned(records, location, take_new_fields=settings.take_new_fields, change_types=True)
    yield from map(printable, _changes(before, after))


def _changes(before: TableSchema | None, after: TableSchema) -> Iterator[str]:
    paths_before = set() if before is None else set(paths(before.columns))
    new = ", ".join(path for path in paths(after.columns) if path not in paths_before)
    yield f"columns: {new or 'none'}" if before is None else f"new in the topic: {new or 'nothing'}"
    for field in () if before is None else before.columns:
        if is_retyped(field.dataType, kind := after.columns[field.name].dataType):
            yield f"another type: {field.name} was {field.dataType.simpleString()} and is {kind.simpleString()}"
    yield from (f"kept as JSON text: {path} ({why})" for path, why in after.kept_as_text.items() if path not in paths_before)
    if after.ignored:
        yield f"ignored, because of STREAMGAUGE_TAKE_NEW_FIELDS=false: {', '.join(after.ignored)}"


def sample(spark: SparkSession, location: Location, settings: Settings) -> Iterator[str]:
    """The columns, Spark's plan from records to rows, and sample rows of the topic's current records."""
    schema = TableSchema.read(location.schema)
    if schema is None:
        return
    yield schema.columns.treeString().rstrip()
    table = table_rows(_records_of_table(spark, location, settings), schema.columns)
    yield table._jdf.queryExecution().executedPlan().toString().rstrip()
    yield from map(str, table.limit(SAMPLE_ROWS).toJSON().collect())


def _records_of_table(spark: SparkSession, location: Location, settings: Settings) -> DataFrame:
    """The records of which a table of the whole topic has rows."""
    records = usable(records_from(spark, settings, {"subscribe": location.topic}), append=location.append)
    return records if location.append else newest(records)


def _of_batch_under_way(spark: SparkSession, location: Location, settings: Settings, checkpoint: StoragePath) -> DataFrame:
    """The newest record of each key in the batch that is not committed; none if there is no such batch."""
    batches = Checkpoint(checkpoint)
    planned, committed = (batches.batch(number) for number in (max(batches.planned, default=-1), batches.last_committed))
    is_in_batch = F.lit(False)  # noqa: FBT003
    for (topic, partition), end in (planned.ends if planned else {}).items():
        start = committed.ends.get((topic, partition), 0) if committed else 0
        is_in_batch |= (F.col("kafka_partition") == partition) & (F.col("kafka_offset") >= start) & (F.col("kafka_offset") < end)
    return newest(usable(records_from(spark, settings, {"subscribe": location.topic})).where(is_in_batch))


def _check_keys(records: DataFrame, location: Location) -> None:
    """Raises StreamgaugeError if there are records, and none has a key."""
    if records.where("key IS NOT NULL").isEmpty() and not records.isEmpty():
        msg = f"no record of topic {location.topic} has a key, so a table cannot have a row per key; `streamgauge ingest {location.topic} --append` creates one with a row per record"
        raise StreamgaugeError(msg)
