"""Reports on an ingested topic: the table's location, the inferred schema, sample rows."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath
from pipeline.ingest.json_types import paths
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


def infer(spark: SparkSession, location: Location, settings: Settings) -> Iterator[str]:
    """Infers the schema from the records of a table, saves it, and yields a line for each change.

    Raises TypeChanged when records do not fit existing columns, AmbiguousNames, and StreamgaugeError as check_timestamps, and for a topic without
    keys whose table is to have a row per key.
    """
    check_timestamps(settings, dict.fromkeys(source_partitions(settings, location.topic), 0))
    before = TableSchema.read(location.schema)
    if before is None and not location.append:
        _check_keys(records_from(spark, settings, {"subscribe": location.topic}), location)
    after = learned(_records_of_table(spark, location, settings), location, take_new_fields=settings.take_new_fields)
    paths_before = set() if before is None else set(paths(before.columns))
    new = [path for path in paths(after.columns) if path not in paths_before]
    yield f"new in the topic: {', '.join(new) or 'nothing'}"
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


def _check_keys(records: DataFrame, location: Location) -> None:
    """Raises StreamgaugeError if there are records, and none has a key."""
    if records.where("key IS NOT NULL").isEmpty() and not records.isEmpty():
        msg = f"no record of topic {location.topic} has a key, so a table cannot have a row per key; `streamgauge ingest {location.topic} --append` creates one with a row per record"
        raise StreamgaugeError(msg)
