"""The Health page: the state of the queries, any problems, and the dead letters."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pandas as pd
import streamlit as st
from confluent_kafka import Message

from contract.kafka.recent_records import Recent
from contract.kafka.result_table import Row, decode_json
from contract.query_status import FAILED, IDLE, RUNNING, SILENT, STOPPED, QueryStatus, decode_state, source_partitions, statuses
from contract.text import behind, duration
from contract.topics import ALERTS, QUERY_STATES, STREAMING_METRICS
from dashboard import charts, formats
from dashboard.health.dead_letters import dead_letters, letters_snapshot
from dashboard.health.history import HISTORY, RECENT, decode_point, history_of
from dashboard.page_head import snapshot_under
from dashboard.reading.reader import Snapshot, follow_recent
from dashboard.reading.source_ends import source_ends

TOPIC = QUERY_STATES.name
METRICS_TOPIC = STREAMING_METRICS.name
ALERTS_TOPIC = ALERTS.name
NEWEST_ALERTS = Recent(records=200)
_WAITING = (
    "As soon as a query has been started, how it does appears here by itself. `streamgauge demo` starts all, `streamgauge run` the queries."
)
_COLOURS = {
    RUNNING: "color: #166534",
    IDLE: "color: #6b7280",
    STOPPED: "background-color: #fde68a; color: #78350f; font-weight: 600",
    FAILED: "background-color: #dc2626; color: #ffffff; font-weight: 700",
    SILENT: "background-color: #dc2626; color: #ffffff; font-weight: 700",
}
_LEVELS = {"error": "background-color: #fee2e2; color: #991b1b", "warning": "background-color: #fef3c7; color: #92400e"}
_CHARTS = (
    ("batch_seconds", "Batch time, seconds", "How long a micro-batch took.", False),
    ("lag", "Lag, records", "What the source held beyond the batch when it was done.", False),
    ("watermark_age_seconds", "Watermark, behind the clock", "Up to when rows are still taken. Years, where old events are played.", True),
    ("state_bytes", "State, bytes", "What is kept in memory between batches.", False),
)


def decode_alert(message: Message) -> Row:
    """time, level, query, what, detail of one alert. Raises KeyError, TypeError or ValueError for any other record."""
    row = decode_json(message.value() or b"")
    texts = {name: row[name] for name in ("level", "query", "what", "detail")}
    for name, text in texts.items():
        if not isinstance(text, str | None):
            msg = f"expected {name} as a text, found {type(text).__name__}"
            raise TypeError(msg)
    return {"time": datetime.fromisoformat(row["time"]).astimezone(UTC), **texts}


def page() -> None:
    """Draws the page. Its upper part refreshes every two seconds; the dead letters do not change while they are read."""
    _overview()
    dead_letters()


@st.fragment(run_every="2s")
def _overview() -> None:
    snapshot = snapshot_under("Health", TOPIC, decode_state, _WAITING)
    if snapshot is None:
        return
    ends = source_ends(snapshot.kafka).of(source_partitions(snapshot.rows))
    now = datetime.now(UTC)
    found = statuses(snapshot.rows, now, ends)
    alerts = follow_recent(snapshot.kafka, ALERTS_TOPIC, NEWEST_ALERTS, decode_alert).snapshot
    _show_troubles(found, now)
    _show_totals(found, alerts, letters_snapshot(snapshot.kafka), now)
    with st.container(border=True, gap="xsmall"):
        _show_queries(found, now)
    with st.container(border=True, gap="xsmall"):
        _show_history(follow_recent(snapshot.kafka, METRICS_TOPIC, RECENT, decode_point).snapshot)
    with st.container(border=True, gap="xsmall"):
        _show_alerts(alerts)


def _show_troubles(found: Sequence[QueryStatus], now: datetime) -> None:
    """Draws the queries that are not running first. Texts from topics are shown as text, never as markup."""
    failed, silent, stopped = ([status for status in found if status.state == state] for state in (FAILED, SILENT, STOPPED))
    broken = len(failed) + len(silent)
    if broken:
        st.error(
            f"**{formats.several(broken, 'query does', 'queries do')} not run.** Nothing of theirs is counted; what their pages show stands still.",
            icon=":material/error:",
        )
    for status in failed:
        with st.container(border=True, gap="xsmall"):
            _show_failed(status, now)
    for process in sorted({(status.host, status.pid) for status in silent}):
        with st.container(border=True, gap="xsmall"):
            _show_silent([status for status in silent if (status.host, status.pid) == process], now)
    if stopped:
        st.warning(
            f"**{formats.several(len(stopped), 'query is', 'queries are')} stopped,** and without an error. `streamgauge run` starts them; they go on where they stopped.",
            icon=":material/stop_circle:",
        )


def _show_failed(status: QueryStatus, now: datetime) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Failed", icon=":material/error:", color="red")
        st.text(f"{status.query}, {duration(now - status.since)} ago", width="content")
    st.code(status.error or "no reason given", language=None, wrap_lines=True)
    if status.error_detail not in {None, status.error}:
        with st.expander("More of the error"):
            st.code(status.error_detail or "", language=None, wrap_lines=True, height=240)


def _show_silent(silent: Sequence[QueryStatus], now: datetime) -> None:
    """Queries of one process, which fall silent together."""
    heard_at = max(status.heard_at for status in silent)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Silent", icon=":material/heart_broken:", color="red")
        st.text(", ".join(status.query for status in silent), width="content")
    st.text(
        f"Their process ({silent[0].pid} on {silent[0].host}) was heard last {duration(now - heard_at)} ago, at {formats.clock(heard_at)}, and said that they ran. "
        "It was killed, or it cannot reach Kafka. Started again, they go on where they were."
    )


def _show_totals(found: Sequence[QueryStatus], alerts: Snapshot, letters: Snapshot, now: datetime) -> None:
    active = sum(not status.is_trouble for status in found)
    day_ago = now - timedelta(days=1)
    alerted = sum(row["time"] > day_ago for row in alerts.rows)
    written = max((row["letter_offset"] + 1 for row in letters.rows), default=0)
    worst = max(found, key=lambda status: status.lag or 0)
    totals = [
        ("Queries running", f"{active} of {len(found)}", "all of them" if active == len(found) else "see above"),
        ("Rows in, per second", formats.count(round(sum(status.input_rows_per_second or 0 for status in found))), "over all queries"),
        ("Largest lag", formats.count(worst.lag or 0), "records, of one query"),
        ("Late rows", formats.count(sum(status.late_rows or 0 for status in found)), "since the queries started"),
        ("Dead letters", formats.count(written), "since the topic is there"),
        ("Alerts", formats.count(alerted), "in 24 hours"),
    ]
    for column, (label, number, meaning) in zip(st.columns(len(totals)), totals, strict=True):
        column.metric(label, number, delta=meaning, delta_color="off", delta_arrow="off", border=True)


def _show_queries(found: Sequence[QueryStatus], now: datetime) -> None:
    st.subheader("Queries", anchor=False)
    rows = [
        {
            "Query": status.query,
            "State": status.state,
            "Since": duration(now - status.since),
            "Rows/s in": status.input_rows_per_second,
            "Done/s": status.processed_rows_per_second,
            "Batch, ms": status.batch_ms,
            "Lag": status.lag,
            "Worst partition": f"{status.worst_partition} ({status.worst_partition_lag:,})" if status.worst_partition_lag else "",
            "Watermark": behind(status.watermark_age_ms),
            "State rows": status.state_rows,
            "State, MB": None if status.state_bytes is None else status.state_bytes / 1e6,
            "Late rows": status.late_rows,
            "Last error": status.error or "",
        }
        for status in found
    ]
    numbers = [name for name in rows[0] if name in {"Rows/s in", "Done/s", "Batch, ms", "Lag", "State rows", "State, MB", "Late rows"}]
    styled = pd.DataFrame(rows).astype(dict.fromkeys(numbers, "float64")).style
    styled = styled.format(precision=0, thousands=",").format("{:,.1f}", subset=["State, MB"])
    st.dataframe(
        styled.map(lambda state: _COLOURS.get(state, ""), subset=["State"]),
        hide_index=True,
        height="content",
        placeholder="",
        column_config={"Query": st.column_config.TextColumn(width=165), "State": st.column_config.TextColumn(width=70)},
    )


def _show_history(snapshot: Snapshot) -> None:
    st.subheader("Over time", anchor=False)
    _show_problem(snapshot)
    history = history_of(snapshot)
    if history.empty:
        st.caption(f"No micro-batch in the last {duration(HISTORY)}.")
        return
    names = sorted(history["query"].unique())
    chosen = st.multiselect("Queries", names, placeholder="all", key="health-queries")
    points, colour_of = history[history["query"].isin(chosen or names)], charts.query_colours(names)
    st.caption(f"Rows per second into each query, the last {duration(HISTORY)}, times in UTC.")
    chart = charts.query_lines(
        points.dropna(subset=["rows_per_second"]), "rows_per_second", colour_of=colour_of, title="rows/s", height=300, legend=True
    )
    st.altair_chart(chart, width="stretch", alt="Lines: rows per second, by query")
    columns = st.columns(2) * 2
    for column, (measure, title, caption, ages) in zip(columns, _CHARTS, strict=True):
        with column:
            st.markdown(f"**{title}**")
            st.caption(caption)
            chart = charts.query_lines(
                points.dropna(subset=[measure]), measure, colour_of=colour_of, title=title, height=190, legend=False, ages=ages
            )
            st.altair_chart(chart, width="stretch", alt=f"Lines: {title}, by query")


def _show_alerts(snapshot: Snapshot) -> None:
    st.subheader("Alerts", anchor=False)
    _show_problem(snapshot)
    if not snapshot.rows:
        st.caption("None in the last 30 days." if snapshot.is_read else "Reading them.")
        return
    frame = pd.DataFrame(list(reversed(snapshot.rows)), columns=["time", "level", "query", "what", "detail"])
    st.dataframe(
        frame.style.map(lambda level: _LEVELS.get(level, ""), subset=["level"]),
        hide_index=True,
        height="content" if len(frame) < 8 else 300,  # noqa: PLR2004 - more would push the rest from the page
        column_config={
            "time": st.column_config.DatetimeColumn("Time (UTC)", format="YYYY-MM-DD HH:mm:ss", timezone="UTC", width=155),
            "level": st.column_config.TextColumn("Level", width=70),
            "query": st.column_config.TextColumn("Query", width=165),
            "what": st.column_config.TextColumn("What", width="large"),
            "detail": st.column_config.TextColumn("Detail"),
        },
    )


def _show_problem(snapshot: Snapshot) -> None:
    if snapshot.error is not None:
        st.caption(f":red[Not current:] {snapshot.error}")
