"""The conventional location of a topic's table, and the schema stored beside it."""

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import types as T  # noqa: N812

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, text_of, write_whole
from pipeline.ingest.json_types import KeptAsText
from pipeline.sinks.sink import name_in_sql

SCHEMA_ENDING = ".schema.json"
DELETIONS = "_deletions"
"""The lake's folder for the tables of deletions; the underscore marks it as internal."""
_QUERY_NAME = re.compile(r"ingest-(?P<topic>.+?)(?P<kind>-debug|-dead-letters)?")
MAX_CHARACTERS = 200
"""Names of files have at most 255, and checkpoints add up to 40 to the topic's."""


@dataclass(frozen=True)
class Location:
    """The paths of the table of `topic`. debug: those of the separate table of `ingest --debug`.

    append: whether the table has a row per record, and not one per key.
    table: the Delta table.
    deletions: a Delta table of the newest records that the table cannot represent in full: deletions, and records whose `latest`
    (records.newest) differs from their own timestamp.
    schema: the columns, as JSON.
    """

    topic: str
    debug: bool
    table: StoragePath
    deletions: StoragePath
    schema: StoragePath
    append: bool = False

    @classmethod
    def of(cls, topic: str, settings: Settings, *, debug: bool = False, append: bool = False) -> "Location":
        """The location for a topic: `nyc-taxi` has the table `nyc_taxi`, and `nyc_taxi_debug` for debugging.

        append: of a table that is still to be created. An existing one stays what it is.
        Raises StreamgaugeError when the table belongs to another topic or has a row per key, and when the name is too long for files.
        """
        if len(topic) > MAX_CHARACTERS:
            msg = f"the name of topic {topic[:20]}... has {len(topic)} characters, and files named after it may have {MAX_CHARACTERS} of them at most; copy the topic to one with a shorter name"
            raise StreamgaugeError(msg)
        location = cls.by_convention(topic, settings, debug=debug)
        stored = TableSchema.read(location.schema)
        if stored is not None and stored.topic != topic:
            msg = f"table {location.name} in {settings.lake} belongs to topic {stored.topic}, so topic {topic} cannot use it; use another STREAMGAUGE_HOME for one of them"
            raise StreamgaugeError(msg)
        if stored is not None and append and not stored.append:
            msg = f"table {location.name} has a row per key, and --append asks for one per record; `streamgauge reset {location.query}` deletes the table, and `streamgauge ingest {topic} --append` then creates it from the records that Kafka still has"
            raise StreamgaugeError(msg)
        return replace(location, append=append if stored is None else stored.append)

    @classmethod
    def by_convention(cls, topic: str, settings: Settings, *, debug: bool) -> "Location":
        """Like `of`, without the check that the table belongs to the topic."""
        name, lake = table_name(topic, debug=debug), settings.lake
        return cls(topic, debug, lake / name, lake / DELETIONS / name, lake / f"{name}{SCHEMA_ENDING}")

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self.table.name

    @property
    def query(self) -> str:
        """The name of the query that writes the table."""
        return query_name(self.topic, debug=self.debug)


def table_name(topic: str, *, debug: bool) -> str:
    return name_in_sql([topic]) + ("_debug" if debug else "")


def query_name(topic: str, *, debug: bool) -> str:
    return f"ingest-{topic}-debug" if debug else f"ingest-{topic}"


def ingested_by(query: str) -> tuple[str, bool] | None:
    """The topic that a query of that name reads, and whether it is one of `ingest --debug`. None if it is no query of an ingest."""
    match = _QUERY_NAME.fullmatch(query)
    return (match["topic"], match["kind"] == "-debug") if match else None


@dataclass(frozen=True)
class TableSchema:
    """A table's schema. columns: without the Kafka columns. kept_as_text: see json_types. ignored: later fields that the settings exclude.

    append: see Location.
    """

    topic: str
    columns: T.StructType
    kept_as_text: KeptAsText = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    append: bool = False

    @classmethod
    def read(cls, path: StoragePath) -> "TableSchema | None":
        """The schema stored at `path`; None if there is none. Raises StreamgaugeError when the file is not a valid schema, StoreUnavailable as `text_of` does."""
        try:
            if (text := text_of(path)) is None:
                return None
            stored: dict[str, Any] = json.loads(text)
            columns, ignored = T.StructType.fromJson(stored["columns"]), tuple(stored["ignored"])
            return cls(stored["topic"], columns, stored["kept_as_text"], ignored, stored.get("append", False))
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
            msg = f"{path} is not the schema of a table ({type(error).__name__}: {error}); restore it from a copy, or delete it to infer it again (with --append, if the table has a row per record)"
            raise StreamgaugeError(msg) from error

    def write(self, path: StoragePath) -> None:
        stored = {**vars(self), "columns": self.columns.jsonValue()}
        write_whole(path, json.dumps(stored, indent=2) + "\n")


def locations(settings: Settings) -> list[Location]:
    """The locations of all topics that have been ingested here, including debug tables."""
    existing = []
    for name in sorted(Path(str(path)).name for path in settings.lake.glob(f"*{SCHEMA_ENDING}")):
        if (schema := TableSchema.read(settings.lake / name)) is not None:
            both = (Location.by_convention(schema.topic, settings, debug=debug) for debug in (False, True))
            existing += [replace(location, append=schema.append) for location in both if location.schema.name == name]
    return existing
