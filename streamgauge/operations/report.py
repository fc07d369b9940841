"""The batch report on a compacted result topic: its last value per key. Works without Spark."""

from collections.abc import Callable, Sequence

from contract.domains import DOMAINS
from contract.topic_values import value_decoder
from infrastructure.errors import check_names
from infrastructure.kafka.result_table import read_to_end
from infrastructure.output.row_formats import Rows
from infrastructure.rows import Row, json_decoder
from infrastructure.settings import Settings

REPORTS = {query: report for domain in DOMAINS for query, report in domain.reports.items()}


def report_rows(query: str, settings: Settings, min_count: int, warn: Callable[[str], None]) -> list[Row]:
    """The current rows of the query's result topic, by window and group: those that count `min_count` or more.

    warn: gets one line if there are rows that cannot be read. Raises StreamgaugeError when the query has no report, and when Kafka or the
    schema registry cannot be reached.
    """
    check_names("report of query", [query], REPORTS)
    report = REPORTS[query]
    decode = json_decoder(report.topic.row, value_decoder(report.topic, settings.registry))
    table = read_to_end(settings.kafka, report.topic.name, decode, warn)
    rows = [row for row in table.rows() if row[report.counted] >= min_count]
    return sorted(rows, key=lambda row: (row["window"]["start"], *(row[column] for column in report.group)))


def with_columns(rows: Sequence[Row], *, is_flat: bool) -> Rows:
    """The rows to show. is_flat: the window becomes the columns window_start and window_end."""
    if is_flat:
        rows = [{f"window_{end}": time for end, time in row["window"].items()} | row for row in rows]
    columns = [name for name in rows[0] if not (is_flat and name == "window")] if rows else []
    return Rows(columns, [[row[name] for name in columns] for row in rows])
