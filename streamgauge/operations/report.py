"""The batch report on a result table: the last value per key of its topic. Works without Spark."""

from collections.abc import Callable, Sequence
from itertools import chain

import orjson

from contract.domains import DOMAINS, plain_name
from contract.topic_values import value_decoder
from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.kafka.result_table import read_to_end
from infrastructure.output.row_formats import Rows
from infrastructure.rows import Row, json_decoder
from infrastructure.settings import Settings

_RESULTS = [topic for domain in DOMAINS for topic in domain.results]
TABLES = {topic.query: topic for topic in reversed(_RESULTS)} | {topic.plain_name: topic for topic in _RESULTS}
"""The topics by their names, and by those of the queries that write them."""


def report_rows(table: str, settings: Settings, min_count: int, warn: Callable[[str], None]) -> list[Row]:
    """The current rows of a table, by window and key: those that count `min_count` or more.

    warn: gets one line if there are rows that cannot be read. Raises StreamgaugeError when there is no such table, or its rows have no count,
    and when Kafka or the schema registry cannot be reached.
    """
    check_names("result table", [plain_name(table)], sorted(TABLES))
    topic = TABLES[plain_name(table)]
    if min_count and not topic.counted:
        msg = f"--min-count: rows of {topic.plain_name} have no count; leave the option out"
        raise StreamgaugeError(msg)
    result = read_to_end(settings.kafka, topic.name, json_decoder(topic.row, value_decoder(topic, settings.registry)), warn)
    rows = sorted(zip(result.keys(), result.rows(), strict=True), key=_order)
    return [row for _, row in rows if not topic.counted or row[topic.counted] >= min_count]


def _order(entry: tuple[bytes, Row]) -> tuple[object, ...]:
    key, row = entry
    fields = _fields_of(key)
    columns = [(name, row[name] is None, row[name]) for name in row if name in fields and name != "window"]
    return row["window"]["start"] if "window" in row else "", columns, key


def _fields_of(key: bytes) -> Row:
    """The fields of a key; none of a key that another program has written."""
    try:
        fields = orjson.loads(key)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def with_columns(rows: Sequence[Row], *, is_flat: bool) -> Rows:
    """The rows to show. is_flat: the window becomes the columns window_start and window_end."""
    if is_flat:
        rows = [{f"window_{end}": time for end, time in row.get("window", {}).items()} | row for row in rows]
    columns = [name for name in dict.fromkeys(chain.from_iterable(rows)) if not (is_flat and name == "window")]
    return Rows(columns, [[row.get(name) for name in columns] for row in rows])
