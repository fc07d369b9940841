"""The history of the queries on the Health page: a small chart for each query, so that none hides another."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import streamlit as st

from contract.topics import STREAMING_METRICS
from dashboard import charts
from dashboard.health.history import HISTORY, history_of
from dashboard.origin import Origin
from dashboard.reading.states import show_problem
from infrastructure.kafka.follower import Snapshot
from infrastructure.text import duration


class Measure(NamedTuple):
    """What one choice shows. lines: the names of its lines, by column of `history_of`."""

    lines: dict[str, str]
    caption: str


MEASURED = Origin(STREAMING_METRICS, "", "ProgressToKafka", "pipeline/monitoring/progress.py")
_RATE, _FEW = "Rows per second", 3
MEASURES = {
    _RATE: Measure(
        {"rows_per_second": "arrive", "processed_per_second": "processed"},
        "Rows per second that arrive, and that the query processes while a batch runs. If more arrive for long, the lag grows.",
    ),
    "Batch time": Measure({"batch_seconds": "batch"}, "Seconds that a micro-batch took."),
    "Parts of a batch": Measure(
        {"reading_seconds": "read", "planning_seconds": "plan", "processing_seconds": "process", "committing_seconds": "commit"},
        "Seconds of a micro-batch: to ask the source for offsets, to plan, to process and write rows, to commit to the checkpoint.",
    ),
    "Lag": Measure({"lag": "lag"}, "Records that the source held beyond the batch when it ended."),
    "Watermark": Measure(
        {"watermark_age_seconds": "behind"}, "How far the watermark is behind the clock. Years, where old events are replayed."
    ),
    "State": Measure({"state_bytes": "bytes"}, "Bytes that the query keeps in memory between batches."),
}


def show_history(snapshot: Snapshot, worst_first: Sequence[str], of_page: Snapshot) -> None:
    """Draws the section. snapshot: of the newest events of the queries. worst_first: their names, of which the first few are shown at first."""
    show_problem(snapshot, of_page)
    history = history_of(snapshot)
    history = history[history["at"] > datetime.now(UTC) - HISTORY]  # the reader keeps older events until newer ones come
    if history.empty:
        if snapshot.is_read:
            st.caption(f"No micro-batch in the last {duration(HISTORY)}.")
        return
    by_measure, by_query, by_all = st.columns([4, 3, 1], vertical_alignment="bottom")
    title = by_measure.segmented_control("Measure", list(MEASURES), default=_RATE, required=True, key="measure", bind="query-params")
    names = sorted(history["query"].unique())
    is_all = by_all.toggle("All", key="all", bind="query-params", help="Show every query.")
    placeholder = "all" if is_all else "those with the largest lag"
    chosen = by_query.multiselect("Queries", names, placeholder=placeholder, key="query", bind="query-params")
    measure = MEASURES[title or _RATE]
    st.caption(f"{measure.caption} The last {duration(HISTORY)}, times in UTC. Each chart has its own scale. Dashed: a start of the query.")
    measured = set(history.dropna(subset=list(measure.lines), how="all")["query"])
    few = names if is_all else [name for name in worst_first if name in measured][:_FEW]
    shown = [name for name in chosen or few if name in measured]
    for place, (cell, name) in enumerate(zip(itertools.cycle(st.columns(3)), shown)):
        with cell:
            st.text(name)
            chart = charts.course(
                history[history["query"] == name], measure.lines, title=title, ages="watermark_age_seconds" in measure.lines
            )
            st.vega_lite_chart(chart, width="stretch", key=f"course-{place}", alt=f"Lines: {title} of {name}")
