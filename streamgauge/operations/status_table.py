"""`streamgauge status`: the status of the queries as a table for the terminal or as JSON for scripts."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import orjson
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from contract.query_status import (
    FAILED,
    IDLE,
    RESTARTING,
    RUNNING,
    SILENT,
    STARTING,
    STOPPED,
    QueryStatus,
    decode_state,
    source_partitions,
    statuses,
)
from contract.topics import ALERTS, QUERY_STATES, Alert
from infrastructure.kafka.follow import follow, rows_left_out
from infrastructure.kafka.recent_records import Recent, RecentReader, of_message
from infrastructure.kafka.result_table import TableReader
from infrastructure.kafka.topic_ends import TopicEnds, partitions_by_topic
from infrastructure.output.terminal import can_redraw
from infrastructure.process.stop_signals import StopRequest
from infrastructure.rows import Row, decoder
from infrastructure.settings import Settings
from infrastructure.text import behind, duration, printable

ALERTS_WITHIN = timedelta(hours=1)
"""How old the alerts are that the table shows."""
_LEVEL_STYLES = {"error": "bold red", "warning": "yellow", "resolved": "green"}
NOTHING = "No query has run on this Kafka yet. If a demo is starting, wait; otherwise, `streamgauge run` starts the queries."
_STYLES = {
    RUNNING: "green",
    IDLE: "dim",
    STARTING: "dim",
    RESTARTING: "bold black on yellow",
    STOPPED: "bold black on yellow",
    FAILED: "bold white on red",
    SILENT: "bold white on red",
}
_COLUMNS = (
    "query",
    "state",
    "since",
    "rows/s in",
    "done/s",
    "batch ms",
    "lag",
    "worst partition",
    "watermark",
    "state rows",
    "MB",
    "too late",
)
_TEXTS = ("query", "state", "worst partition")
_LEAST_FIRST = ("MB", "worst partition", "state rows", "done/s", "watermark", "too late", "batch ms", "since")
"""The columns that a narrow terminal omits, in this order."""


def as_json(query_statuses: Sequence[QueryStatus]) -> str:
    """A JSON array of the fields of QueryStatus."""
    return orjson.dumps([status.as_row() for status in query_statuses]).decode()


def recent_alerts(settings: Settings) -> list[Row]:
    """The newest alerts, oldest first. Raises StreamgaugeError when Kafka cannot be read."""
    with _alerts(settings).opened() as reader:
        reader.read_to_end()
        return reader.table.rows()


def as_table(query_statuses: Sequence[QueryStatus], now: datetime, width: int, alerts: Sequence[Row] = ()) -> RenderableType:
    """A table that fits `width` terminal columns, followed by the last error of each query that had one, and `alerts`."""
    if not query_statuses:
        return Text(NOTHING)
    columns = dict(zip(_COLUMNS, zip(*(_cells(status, now) for status in query_statuses), strict=True), strict=True))
    left_out = []
    for name in _LEAST_FIRST:
        if sum(max(len(name), *(cell.cell_len for cell in cells)) + 3 for name, cells in columns.items()) < width:
            break
        left_out.append(name)
        del columns[name]
    table = Table()
    for name in columns:
        table.add_column(name, justify="left" if name in _TEXTS else "right")
    for line in zip(*columns.values(), strict=True):
        table.add_row(*line)
    hint = [Text(f"Columns that do not fit: {', '.join(left_out)}; --format json has them.", style="dim")] if left_out else []
    errors = [_error(status, now) for status in query_statuses if status.error]
    return Group(table, *hint, *errors, *(_alert(alert, now) for alert in alerts))


def watch(settings: Settings, console: Console) -> None:
    """Shows the table and keeps it current until interrupted. If Kafka becomes unreachable, it says so and recovers.

    In a pipe, or with TERM=dumb, it prints one table after another.

    Raises StreamgaugeError when Kafka cannot be reached at first.
    """
    partitions_by_topic(settings.kafka)
    shown: list[RenderableType] = []
    with contextlib.ExitStack() as at_end:
        show: Callable[[RenderableType], None] = console.print
        if can_redraw(console):
            show = partial(at_end.enter_context(Live(console=console, auto_refresh=False)).update, refresh=True)
        ends = at_end.enter_context(contextlib.closing(TopicEnds(settings.kafka)))

        def look(readers: Sequence[TableReader]) -> None:
            states, alerts = (reader.table.rows() for reader in readers)
            ends.ask(source_partitions(states))
            now = datetime.now(UTC)
            recent = [alert for alert in alerts if alert["time"] > now - ALERTS_WITHIN]  # the reader keeps older ones until newer ones come
            warnings = (Text(f"warning: {line}", style="yellow") for line in sorted(rows_left_out(readers)))
            shown[:] = [*warnings, as_table(statuses(states, now, ends.ends), now, console.width, recent)]
            show(Group(*shown, Text(f"{now:%Y-%m-%d %H:%M:%S} UTC. Ctrl-C ends.", style="dim")))

        def fail(error: str) -> None:
            show(Group(Text(f"error: {error}", style="bold red"), *([Text("before that:")] if shown else []), *shown))

        states = partial(TableReader, settings.kafka, QUERY_STATES.name, decode_state)
        follow([lambda: states().opened(), lambda: _alerts(settings).opened()], look, StopRequest(), fail)


def _alerts(settings: Settings) -> RecentReader:
    return RecentReader(settings.kafka, ALERTS.name, Recent(records=5, within=ALERTS_WITHIN), of_message(decoder(Alert)))


def _cells(status: QueryStatus, now: datetime) -> list[Text]:
    worst = "" if not status.worst_partition_lag else f"{status.worst_partition} ({status.worst_partition_lag:,})"
    plain = (
        duration(now - status.since),
        _number(status.input_rows_per_second),
        _number(status.processed_rows_per_second),
        _number(status.batch_ms),
        _number(status.lag),
        worst,
        behind(status.watermark_age_ms),
        _number(status.state_rows),
        "" if status.state_bytes is None else f"{status.state_bytes / 1e6:,.1f}",
        _number(status.late_rows),
    )
    # Text, not str: rich would interpret markup in names, which come from a topic.
    return [
        Text(printable(status.query)),
        Text(f" {status.state.upper()} " if status.is_trouble else status.state, style=_STYLES[status.state]),
    ] + [Text(printable(cell)) for cell in plain]


def _error(status: QueryStatus, now: datetime) -> Text:
    ago = "" if status.error_at is None else f", {duration(now - status.error_at)} ago"
    return Text.assemble((f"{printable(status.query)}, last error{ago}: ", "bold red"), printable(status.error or ""))


def _alert(alert: Row, now: datetime) -> Text:
    head = f"{alert['level']}, {duration(now - alert['time'])} ago: "
    return Text.assemble((head, _LEVEL_STYLES[alert["level"]]), printable(f"{alert['query']}: {alert['what']}"))


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"
