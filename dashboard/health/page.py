"""The Health page: the state of the queries, any problems, and the dead letters."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pandas as pd
import streamlit as st

from contract.query_status import FAILED, RESTARTING, SILENT, STARTING, STOPPED, QueryStatus
from contract.topics import ALERTS, QUERY_STATES, STREAMING_METRICS, Alert
from dashboard import formats
from dashboard.health.dead_letters import dead_letters, letters_snapshot
from dashboard.health.history import RECENT, decode_point
from dashboard.health.over_time import MEASURED, show_history
from dashboard.origin import Origin
from dashboard.page_head import dashboard_settings, panel, refreshing, show_totals, snapshot_under
from dashboard.reading.polls import current_statuses
from dashboard.reading.reader import follow, follow_recent
from dashboard.reading.states import show_problem
from infrastructure.kafka.follower import Snapshot
from infrastructure.kafka.recent_records import Recent, of_message
from infrastructure.rows import decoder
from infrastructure.text import behind, duration

TOPIC = QUERY_STATES
METRICS_TOPIC = STREAMING_METRICS.name
ALERTS_TOPIC = ALERTS.name
STATES = Origin(QUERY_STATES, "", "QueryStates", "pipeline/monitoring/query_states.py")
TOLD = Origin(ALERTS, "", "Alerts", "pipeline/monitoring/alerts.py")
NEWEST_ALERTS, _NOTHING = Recent(records=200), "\N{EN DASH}"
_WAITING = (
    "The state of each query appears here once it has been started. `streamgauge demo` starts everything, `streamgauge run` the queries."
)
_COLOURS = {
    RESTARTING: "background-color: #fde68a; color: #78350f; font-weight: 600",
    STOPPED: "background-color: #fde68a; color: #78350f; font-weight: 600",
    FAILED: "background-color: #dc2626; color: #ffffff; font-weight: 700",
    SILENT: "background-color: #dc2626; color: #ffffff; font-weight: 700",
}
_LEVELS = {
    "error": ("background-color: #fee2e2; color: #991b1b", "background-color: #4c1d1d; color: #fecaca"),
    "warning": ("background-color: #fef3c7; color: #92400e", "background-color: #453009; color: #fde68a"),
    "resolved": ("background-color: #dcfce7; color: #166534", "background-color: #12351f; color: #bbf7d0"),
}
"""Of an alert of each level: light and dark."""


decode_alert = of_message(decoder(Alert))


def page() -> None:
    """Draws the page. Its upper part refreshes; the dead letters do not change while they are read."""
    _queries()
    dead_letters(lambda: follow(dashboard_settings().kafka, TOPIC).snapshot)


@refreshing
def _queries() -> None:
    snapshot = snapshot_under("Health", TOPIC, _WAITING)
    if snapshot is None:
        return
    now = datetime.now(UTC)
    found = current_statuses(snapshot, now)
    alerts = follow_recent(snapshot.kafka, ALERTS_TOPIC, NEWEST_ALERTS, decode_alert).snapshot
    _say_what_is_wrong(found)
    with panel(st.container(), "Queries", origin=STATES):
        _show_queries(found, now)
    _show_troubles(found, now)
    _show_totals(found, alerts, letters_snapshot(snapshot.kafka), now)
    with panel(st.container(), "Over time", origin=MEASURED):
        worst_first = sorted(found, key=lambda status: (not status.is_trouble, -(status.lag or 0), status.query))
        history = follow_recent(snapshot.kafka, METRICS_TOPIC, RECENT, decode_point).snapshot
        show_history(history, [status.query for status in worst_first], snapshot)
    with panel(st.container(), "Alerts", origin=TOLD):
        _show_alerts(alerts, snapshot)


def _say_what_is_wrong(found: Sequence[QueryStatus]) -> None:
    broken = sum(status.state in {FAILED, SILENT} for status in found)
    # One that has read all has ended as it should, as with --once.
    stopped = sum(status.state == STOPPED and status.lag != 0 for status in found)
    if broken:
        st.error(
            f"**{formats.several(broken, 'query does', 'queries do')} not run,** and nothing changes in what they write. "
            "Each is shown below, with the reason.",
            icon=":material/error:",
        )
    if stopped:
        st.warning(
            f"**{formats.several(stopped, 'query is', 'queries are')} stopped,** without an error. `streamgauge run` continues where {'it' if stopped == 1 else 'they'} stopped; "
            "for an ingested topic, `streamgauge ingest`.",
            icon=":material/stop_circle:",
        )


def _show_troubles(found: Sequence[QueryStatus], now: datetime) -> None:
    """Draws the reasons of queries that do not run. Texts from topics are shown as text, never as markup."""
    silent = [status for status in found if status.state == SILENT]
    for process in sorted({(status.host, status.pid) for status in silent}):
        with st.container(border=True, gap="xsmall"):
            _show_silent([status for status in silent if (status.host, status.pid) == process], now)
    for status in found:
        if status.state in {FAILED, RESTARTING}:
            with st.container(border=True, gap="xsmall"):
                _show_error(status, now)


def _show_error(status: QueryStatus, now: datetime) -> None:
    """Draws a query that has failed, or restarts after a failure."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if status.state == FAILED:
            st.badge("Failed", icon=":material/error:", color="red")
        else:
            st.badge("Restarting", icon=":material/restart_alt:", color="orange")
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
        f"Their process ({silent[0].pid} on {silent[0].host}) last reported {duration(now - heard_at)} ago, at {formats.clock(heard_at)}. "
        "It was killed, or it cannot reach Kafka. When it is started again, they continue where they stopped."
    )


def _show_totals(found: Sequence[QueryStatus], alerts: Snapshot, letters: Snapshot, now: datetime) -> None:
    starting = sum(status.state == STARTING for status in found)
    active = sum(not status.is_trouble for status in found) - starting
    day_ago = now - timedelta(days=1)
    levels = [row["level"] for row in alerts.rows if row["time"] > day_ago]
    more = "+" if len(levels) >= NEWEST_ALERTS.records else ""
    alerted = formats.count(len(levels) - levels.count("resolved")) + more
    written = formats.count(max((row["letter_offset"] + 1 for row in letters.rows), default=0))
    worst = max(found, key=lambda status: status.lag or 0)
    totals = [
        (
            "Queries running",
            f"{active} of {len(found)}",
            "all" if active == len(found) else f"{starting} starting" if active + starting == len(found) else "see the table",
        ),
        ("Rows in, per second", formats.count(round(sum(status.input_rows_per_second or 0 for status in found))), "over all queries"),
        ("Largest lag", formats.count(worst.lag or 0), "records, of one query"),
        ("Too late", formats.count(sum(status.late_rows or 0 for status in found)), "rows, since the start"),
        ("Dead letters", written if letters.is_read else _NOTHING, "in all"),
        ("Alerts", alerted if alerts.is_read else _NOTHING, "in 24 hours"),
    ]
    show_totals(totals)


def _show_queries(found: Sequence[QueryStatus], now: datetime) -> None:
    rows = [
        {
            "Query": status.query,
            "State": status.state,
            "Lag": status.lag,
            "Rows/s in": status.input_rows_per_second,
            "Done/s": status.processed_rows_per_second,
            "Batch, ms": status.batch_ms,
            "Watermark": behind(status.watermark_age_ms),
            "Too late": status.late_rows,
            "State rows": status.state_rows,
            "State, MB": None if status.state_bytes is None else status.state_bytes / 1e6,
            "Worst partition": f"{status.worst_partition} ({status.worst_partition_lag:,})" if status.worst_partition_lag else "",
            "Since": duration(now - status.since),
        }
        for status in found
    ]
    numbers = [name for name in rows[0] if name in {"Rows/s in", "Done/s", "Batch, ms", "Lag", "State rows", "State, MB", "Too late"}]
    styled = pd.DataFrame(rows).astype(dict.fromkeys(numbers, "float64")).style
    styled = styled.format(precision=0, thousands=",").format("{:,.1f}", subset=["State, MB"])
    st.dataframe(
        styled.map(lambda state: _COLOURS.get(state, ""), subset=["State"]),
        hide_index=True,
        height="content",
        placeholder="",
        column_config={
            name: st.column_config.TextColumn(width=width) for name, width in {"Query": 165, "State": 70, "Watermark": 120}.items()
        },
    )
    _show_state(found)
    recovered = [status for status in found if not status.is_trouble and status.error]
    if recovered:
        label = f"{formats.several(len(recovered), 'query has', 'queries have')} failed and recovered automatically"
        with st.expander(label, icon=":material/check_circle:"):
            for status in recovered:
                failed = "" if status.error_at is None else f", failed {duration(now - status.error_at)} ago"
                st.text(f"{status.query}{failed}, {status.state} since")
                st.code(status.error, language=None, wrap_lines=True)


def _show_state(found: Sequence[QueryStatus]) -> None:
    rows = [
        {
            "Query": status.query,
            "Operator": operator["operator"],
            "Rows": operator["rows"],
            "MB": operator["bytes"] / 1e6,
            "Timers": operator["timers"],
        }
        for status in found
        for operator in status.state_operators
    ]
    if not rows:
        return
    with st.expander("State by operator", icon=":material/memory:"):
        st.caption("Rows and timers that each stateful operator keeps between batches, and its memory.")
        frame = pd.DataFrame(rows).astype({"Timers": "Int64"})
        styled = frame.style.format(thousands=",", na_rep="").format("{:,.1f}", subset=["MB"])
        st.dataframe(styled, hide_index=True, height="content", placeholder="")


def _show_alerts(snapshot: Snapshot, of_page: Snapshot) -> None:
    show_problem(snapshot, of_page)
    if not snapshot.rows:
        if not snapshot.error:
            st.caption("None in the last 30 days." if snapshot.is_read else "Reading them from Kafka.")
        return
    frame = pd.DataFrame(list(reversed(snapshot.rows)), columns=["time", "level", "query", "what", "detail"])
    is_dark = st.context.theme.type == "dark"
    st.dataframe(
        frame.style.map(lambda level: _LEVELS[level][is_dark] if level in _LEVELS else "", subset=["level"]),
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
