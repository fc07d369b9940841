"""Where a topic's table is, by convention, and the schema that lies beside it."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import types as T  # noqa: N812

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import StoragePath, write_whole
from pipeline.ingest.json_types import Notes

SCHEMA_ENDING = ".schema.json"
DELETIONS = "_deletions"
"""The folder of the lake for the tables of deletions; its name says that it is internal."""


@dataclass(frozen=True)
class Location:
    """The places of the table of `topic`, or of the one that `ingest --debug` has for itself.

    table: the Delta table. deletions: a Delta table of the newest records that the table does not tell, or not in full: deletions, and those
    whose `latest` (records.newest) is not their own timestamp.
    schema: the columns, as JSON.
    """

    topic: str
    debug: bool
    table: StoragePath
    deletions: StoragePath
    schema: StoragePath

    @classmethod
    def of(cls, topic: str, settings: Settings, *, debug: bool = False) -> "Location":
        """By the topic's name: `nyc-taxi` has the table `nyc_taxi`, and for debugging `nyc_taxi_debug`.

        Raises StreamgaugeError when another topic's table has that name.
        """
        location = cls.by_convention(topic, settings, debug=debug)
        known = TableSchema.read(location.schema)
        if known is not None and known.topic != topic:
            msg = f"table {location.name} in {settings.lake} is that of topic {known.topic}, so topic {topic} cannot have it; use another STREAMGAUGE_HOME for one of them"
            raise StreamgaugeError(msg)
        return location

    @classmethod
    def by_convention(cls, topic: str, settings: Settings, *, debug: bool = False) -> "Location":
        """As `of`, of a topic that is known to have the table."""
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
    """The name of the table of `topic`."""
    return re.sub(r"\W", "_", topic, flags=re.ASCII) + ("_debug" if debug else "")


def query_name(topic: str, *, debug: bool) -> str:
    """The name of the query that ingests `topic`."""
    return f"ingest-{topic}-debug" if debug else f"ingest-{topic}"


@dataclass(frozen=True)
class TableSchema:
    """What a table's columns are, and why. columns: without those of Kafka's. ignored: fields that came later, and that settings say to leave out."""

    topic: str
    columns: T.StructType
    notes: Notes = field(default_factory=Notes)
    ignored: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: StoragePath) -> "TableSchema | None":
        """The schema kept at `path`, None if there is none. Raises StreamgaugeError when it is not as `write` writes it."""
        try:
            kept: dict[str, Any] = json.loads(path.read_text())
            notes = Notes(kept["kept_as_text"], kept["without_column"])
            return cls(kept["topic"], T.StructType.fromJson(kept["columns"]), notes, tuple(kept["ignored"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{path} is no schema of a table ({type(error).__name__}: {error}); bring it back from a copy, or delete it: it is then inferred again"
            raise StreamgaugeError(msg) from error

    def write(self, path: StoragePath) -> None:
        """Keeps it at `path`."""
        kept = {
            "topic": self.topic,
            "columns": self.columns.jsonValue(),
            "kept_as_text": self.notes.kept_as_text,
            "without_column": self.notes.without_column,
            "ignored": list(self.ignored),
        }
        write_whole(path, json.dumps(kept, indent=2) + "\n")


def locations(settings: Settings) -> list[Location]:
    """Those of all topics that have ever been ingested here, for debugging too."""
    found = []
    for name in sorted(Path(str(path)).name for path in settings.lake.glob(f"*{SCHEMA_ENDING}")):
        if (schema := TableSchema.read(settings.lake / name)) is not None:
            location = Location.by_convention(schema.topic, settings)
            is_debug = location.schema.name != name
            found.append(Location.by_convention(schema.topic, settings, debug=True) if is_debug else location)
    return found
