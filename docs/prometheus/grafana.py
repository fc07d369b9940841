"""Writes docs/prometheus/grafana.json, a Grafana board with the figures of `streamgauge metrics`: `python docs/prometheus/grafana.py`."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from streamgauge.metrics.counters import Counters
from streamgauge.metrics.exporter import Figures

FILE = Path(__file__).with_suffix(".json")
SOURCE = {"type": "prometheus", "uid": "${source}"}
OF_QUERY = '{query=~"$query"}'


class Panel(NamedTuple):
    """A panel. expression: in PromQL. legend: of each series, by its labels. unit: as Grafana calls it."""

    title: str
    expression: str
    legend: str = "{{query}}"
    unit: str = "short"


def _of(title: str, figure: str, unit: str = "short") -> Panel:
    return Panel(title, figure + OF_QUERY, unit=unit)


def _rate(title: str, figure: str) -> Panel:
    return Panel(title, f"rate({figure}{OF_QUERY}[$__rate_interval])", unit="cps")


def _age(title: str, figure: str) -> Panel:
    return Panel(title, f"time() - {figure}{OF_QUERY}", unit="s")


def _increase(title: str, figure: str) -> Panel:
    return Panel(title, f"increase({figure}{OF_QUERY}[$__rate_interval])")


NUMBERS = (
    Panel("Exporter reads Kafka", "min(streamgauge_exporter_connected)"),
    Panel("Queries that are down", 'sum(streamgauge_query_state{state=~"failed|silent"})'),
    Panel("Wrong tables", 'sum(streamgauge_table_verdict{verdict="wrong"})'),
    Panel("Rows found right", "sum(streamgauge_table_equal_rows)"),
)
LINES = (
    Panel("Queries by state", "sum by (state) (streamgauge_query_state)", "{{state}}"),
    _of("Delay from source to result", "streamgauge_query_end_to_end_delay_seconds", "s"),
    Panel("Lag", f"sum by (query) (streamgauge_query_lag_records{OF_QUERY})"),
    Panel("Written by producers", "sum by (topic) (rate(streamgauge_topic_end_offset[$__rate_interval]))", "{{topic}}", "cps"),
    _rate("Rows read", "streamgauge_query_input_rows_total"),
    _rate("Rows written", "streamgauge_query_output_rows_total"),
    Panel(
        "Batch duration, 95th percentile",
        f"histogram_quantile(0.95, sum by (query, le) (rate(streamgauge_query_batch_duration_seconds_bucket{OF_QUERY}[$__rate_interval])))",
        unit="s",
    ),
    _increase("Too late", "streamgauge_query_late_rows_total"),
    Panel("Dead letters", "sum by (topic, reason) (increase(streamgauge_dead_letters_total[$__rate_interval]))", "{{topic}}: {{reason}}"),
    _of("Watermark behind the clock", "streamgauge_query_watermark_delay_seconds", "s"),
    Panel("Watermark", f"1000 * streamgauge_query_watermark_timestamp_seconds{OF_QUERY}", unit="dateTimeAsIso"),
    _of("Rows of state", "streamgauge_query_state_rows"),
    _of("Memory of state", "streamgauge_query_state_bytes", "bytes"),
    _increase("Starts", "streamgauge_query_starts_total"),
    _increase("Failures", "streamgauge_query_failures_total"),
    _age("Since the last report", "streamgauge_query_report_timestamp_seconds"),
    _age("Since the last batch", "streamgauge_query_batch_timestamp_seconds"),
    _age("Since a table was verified", "streamgauge_table_verdict_timestamp_seconds"),
)


def figures() -> dict[str, str]:
    """What each figure is, by its name without the suffix of its type."""
    registry = CollectorRegistry()
    Counters(registry)
    registry.register(Figures())
    return {figure.name: figure.documentation for figure in registry.collect()}


def figure_of(panel: Panel) -> str:
    """The name of the figure that a panel shows, as in `figures`."""
    (name,) = re.findall(r"streamgauge_\w+", panel.expression)
    return re.sub(r"_(total|bucket)$", "", name)


def board() -> dict[str, Any]:
    """The board, as Grafana imports it. It asks for the Prometheus to read, and which queries to show."""
    variables = [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "query",
            "label": "Query",
            "type": "query",
            "datasource": SOURCE,
            "query": "label_values(streamgauge_query_state, query)",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]
    panels = [*_placed("stat", NUMBERS, width=6, height=4, top=0), *_placed("timeseries", LINES, width=8, height=8, top=4)]
    return {
        "uid": "streamgauge",
        "title": "Streamgauge",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": variables},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }


def _placed(kind: str, panels: Iterable[Panel], *, width: int, height: int, top: int) -> Iterator[dict[str, Any]]:
    """The panels from left to right, then from top to bottom, in a grid that is 24 wide."""
    meaning, in_a_row = figures(), 24 // width
    for number, panel in enumerate(panels):
        yield {
            "type": kind,
            "title": panel.title,
            "description": meaning[figure_of(panel)],
            "datasource": SOURCE,
            "gridPos": {"x": number % in_a_row * width, "y": top + number // in_a_row * height, "w": width, "h": height},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [{"refId": "A", "datasource": SOURCE, "expr": panel.expression, "legendFormat": panel.legend}],
        }


def text() -> str:
    """The file."""
    return json.dumps(board(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
