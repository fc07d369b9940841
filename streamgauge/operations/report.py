"""The batch report on a compacted result topic: its last value per key, as a table, CSV or JSON. Works without Spark."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import orjson
from rich.table import Table

from contract.domains import DOMAINS
from contract.domains.domain import Report
from contract.errors import StreamgaugeError
from contract.kafka.result_table import Decode, Row, decode_json, read_to_end
from contract.settings import Settings

REPORTS = {query: report for domain in DOMAINS for query, report in domain.reports.items()}


def report_rows(query: str, settings: Settings, min_count: int = 0) -> list[Row]:
    """The current rows of the query's result topic, by window and group, except those that count less than `min_count`.

    Raises StreamgaugeError when the query has no report, Kafka or the schema registry cannot be reached, or rows cannot be read.
    """
    report = REPORTS.get(query)
    if report is None:
        msg = f"no report for {query!r}; there are {', '.join(REPORTS)}"
        raise StreamgaugeError(msg)
    table = read_to_end(settings.kafka, report.topic.name, _decoder(report, settings))
    if table.unreadable:
        key, reason = next(iter(table.unreadable.items()))
        msg = f"{len(table.unreadable)} rows of topic {report.topic.name} cannot be read, the first with key {key!r}: {reason}; who wrote them? Delete them by null values"
        raise StreamgaugeError(msg)
    rows = [row for row in table.rows() if row[report.counted] >= min_count]
    return sorted(rows, key=lambda row: (row["window"]["start"], *(row[column] for column in report.group)))


def _decoder(report: Report, settings: Settings) -> Decode:
    if not report.is_avro:
        return decode_json
    from contract.registry.client import SchemaRegistry, avro_rows

    return avro_rows(SchemaRegistry(settings.registry))


def as_json(rows: Sequence[Row]) -> str:
    """A JSON array of the row values, as in the topic."""
    return orjson.dumps(list(rows)).decode()


def as_csv(rows: Sequence[Row]) -> str:
    """CSV with a header. The window becomes the columns window_start and window_end."""
    flat = [_flat(row) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(flat[0]) if flat else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue().rstrip("\n")


def as_table(rows: Sequence[Row]) -> Table:
    """A table for the terminal. Times are UTC."""
    table = Table()
    flat = [_flat(row) for row in rows]
    for column, value in (flat[0] if flat else {"no rows": ""}).items():
        table.add_column(column, justify="right" if isinstance(value, int | float) else "left")
    for row in flat:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    return table


def _flat(row: Row) -> dict[str, Any]:
    window = {f"window_{end}": time for end, time in row["window"].items()}
    return window | {name: value for name, value in row.items() if name != "window"}
