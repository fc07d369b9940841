"""Writes result topics as Parquet files, for readers that do not speak Kafka: one row for each key, as the topic has it.

A table with windows has a file for each day on which its windows start, `results/nest-camera-stats/date=2026-11-27/rows.parquet`; another table is
one file. Each file is replaced as a whole, so that a reader never sees two rows of a key.
"""

import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import parquet

from contract.domains import TOPICS, plain_name
from contract.topic_values import value_decoder
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError, check_names, raise_all
from infrastructure.kafka.errors import KafkaUnavailable
from infrastructure.kafka.result_table import read_to_end
from infrastructure.rows import Fields, Row, decoder
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, asking, bytes_of, folders_in, write_whole
from infrastructure.storage.removal import remove
from streamgauge.columns import schema_of

FOLDER, FILE = "results", "rows.parquet"
TABLES: Mapping[str, Topic] = {topic.plain_name: topic for topic in TOPICS if topic.is_result and topic.row.names()}
"""The topics that are written, by their plain names."""


@dataclass(frozen=True)
class Exported:
    """An exported table. differing: the files that differed from the topic, which are replaced or deleted."""

    topic: str
    folder: StoragePath
    rows: int
    differing: tuple[StoragePath, ...]


def export(settings: Settings, names: Sequence[str], warn: Callable[[str], None], *, check: bool) -> Iterator[Exported]:
    """Replaces the files of the named topics, or of all, that differ from their topic, and deletes those of days that it no longer has.

    check: changes nothing. warn: gets a line on rows that cannot be read, which are left out. Raises StreamgaugeError for an unknown name, and
    when Kafka or the object store cannot be reached; and at the end when a topic is missing, or cannot be read without the schema registry.
    """
    check_names("result topic", names := [*map(plain_name, names)], TABLES)
    problems = list[StreamgaugeError]()
    for name in names or TABLES:
        topic, folder = TABLES[name], settings.lake / FOLDER / name
        try:
            table = read_to_end(settings.kafka, topic.name, decoder(topic.row, value_decoder(topic, settings.registry)), warn)
        except KafkaUnavailable:
            raise
        except StreamgaugeError as error:
            problems.append(error)
            continue
        wanted = {folder / day / FILE if day else folder / FILE: rows for day, rows in _by_day(topic, table.rows()).items()}
        with asking(folder):
            old = [path for day in folders_in(folder) if (path := folder / day / FILE) not in wanted and path.exists()]
        new = {path: content for path, rows in wanted.items() if (content := as_parquet(topic.row, rows)) != bytes_of(path)}
        yield Exported(name, folder, sum(map(len, wanted.values())), (*new, *old))
        if check:
            continue
        for path, content in new.items():
            write_whole(path, content)
        for path in old:
            remove(path)
    raise_all(problems)


def _by_day(topic: Topic, rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows by the folder of their day; all by "", also if there are none, if the table has no windows. Keys decide, so that a row stays in its folder."""
    days: dict[str, list[Row]] = defaultdict(list, {} if topic.has_windows else {"": []})
    for row in rows:
        start = row.get("started") or row["window"]["start"] if topic.has_windows else None
        days[f"date={start:%Y-%m-%d}" if start else ""].append(row)
    return days


def as_parquet(fields: type[Fields], rows: Sequence[Row]) -> bytes:
    """The rows as a file, in an order and with settings that give the same bytes for the same rows."""
    table = pa.Table.from_pylist(sorted(rows, key=repr), schema=schema_of(fields))
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return file.getvalue()
