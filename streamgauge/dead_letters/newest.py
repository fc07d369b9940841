"""The newest dead letters, as a table for the terminal or as JSON."""

import orjson
from rich.table import Table
from rich.text import Text

from contract.topics import DEAD_LETTERS
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.dead_letters import letter_of, source_of
from infrastructure.kafka.recent_records import Recent, RecentReader
from infrastructure.kafka.result_table import left_out
from infrastructure.output.terminal import warn
from infrastructure.rows import Row
from infrastructure.text import printable

_WIDE_COLUMNS = 110


def newest_letters(kafka: KafkaCluster, limit: int, reason: str | None) -> list[Row]:
    """The newest `limit` dead letters, newest first. reason: keeps only those whose reason contains it.

    Prints a warning if there are records that are no dead letters. Raises StreamgaugeError when Kafka cannot be read.
    """
    with RecentReader(kafka, DEAD_LETTERS.name, Recent(limit), letter_of).opened() as reader:
        reader.read_to_end()
        if line := left_out(DEAD_LETTERS.name, reader.table.unreadable):
            warn(line)
        return [row for row in reversed(reader.table.rows()[-limit:]) if reason is None or reason in row["reason"]]


def as_json(letters: list[Row]) -> str:
    """The letters from `letter_of` as a JSON array. Times are ISO 8601 with Z."""
    return orjson.dumps(letters, option=orjson.OPT_UTC_Z).decode()


def as_table(letters: list[Row], width: int) -> Table:
    """A table for a terminal of `width` columns, one line of text per letter. A narrow one omits the times."""
    table, is_wide = Table(expand=True), width >= _WIDE_COLUMNS
    for name in ("letter", "reason", "source", "bytes", *(["its time"] if is_wide else [])):
        table.add_column(name, justify="right" if name in {"letter", "bytes"} else "left", max_width=28, overflow="fold")
    table.add_column("begins with", no_wrap=True, overflow="crop", ratio=1)
    for row in letters:
        cells = [str(row["letter_offset"]), row["reason"], source_of(row), "" if row["bytes"] is None else f"{row['bytes']:,}"]
        cells += [row["timestamp"] or ""] if is_wide else []
        table.add_row(*(Text(printable(cell)) for cell in (*cells, row["text"].partition("\n")[0])))
    return table
