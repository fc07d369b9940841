"""The dead letters on the Health page. Their bytes are untrusted: shown as text or hex, never as markup, and of limited size."""

from collections.abc import Callable, Sequence, Sized
from datetime import datetime
from typing import Literal

import pandas as pd
import streamlit as st

from contract.topics import DEAD_LETTERS
from dashboard import formats
from dashboard.origin import Origin
from dashboard.page_head import dashboard_settings, panel
from dashboard.reading.reader import follow_recent
from dashboard.reading.states import show_problem
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.dead_letters import MAX_SHOWN_BYTES, letter_of, readable, source_of, whole_letter
from infrastructure.kafka.follower import Snapshot
from infrastructure.kafka.recent_records import Recent
from infrastructure.rows import Row

TOPIC = DEAD_LETTERS.name
UNUSABLE = Origin(DEAD_LETTERS, "", "dead_letters", "pipeline/sinks/dead_letters.py")
NEWEST = Recent(records=500)
_HELD, _SHOWN_PIXELS, _SHORT, _ROWS_SHOWN = "health-letters", 200, 400, 8


def letters_snapshot(kafka: KafkaCluster) -> Snapshot:
    """The newest dead letters, oldest first."""
    return follow_recent(kafka, TOPIC, NEWEST, letter_of).snapshot


@st.fragment(run_every="5s")
def dead_letters(of_page: Callable[[], Snapshot]) -> None:
    """Draws the section. The list does not change until the reader asks for newer letters, so that nothing moves while reading.

    of_page: gives what the page's head is about.
    """
    kafka, head = dashboard_settings().kafka, of_page()
    snapshot = letters_snapshot(kafka)
    if not snapshot.is_read and (head.error or not snapshot.error):
        return
    with panel(st.container(), "Dead letters", origin=UNUSABLE):
        show_problem(snapshot, head)
        held = _held(snapshot)
        if held:
            _show(held, kafka if snapshot.error is None else None)
        elif snapshot.is_read:
            st.caption("None in the last 30 days: every record could be used.")


def _held(snapshot: Snapshot) -> tuple[Row, ...]:
    """The letters shown, newest first."""
    held: tuple[Row, ...] = st.session_state.get(_HELD, ())
    written_at = {row["letter_offset"]: row["at"] for row in snapshot.rows}
    newest_held = max((row["letter_offset"] for row in held), default=-1)  # not the last one written, if the clocks of writers differ
    newer = sum(offset > newest_held for offset in written_at)
    is_another_topic = max(written_at, default=newest_held) < newest_held or any(
        written_at.get(row["letter_offset"], row["at"]) != row["at"] for row in held
    )
    label = f"Show {formats.several(newer, 'newer one', 'newer ones')}" if newer else "No newer ones"
    is_asked = bool(held) and st.button(label, disabled=not newer, key="health-newer", icon=":material/refresh:")
    if is_asked or not held or is_another_topic:
        st.session_state[_HELD] = held = tuple(reversed(snapshot.rows))
    return held


def _show(held: Sequence[Row], kafka: KafkaCluster | None) -> None:
    """Draws the letters. kafka: None while it cannot be read; only the excerpts are shown then."""
    by_reason, by_source = st.columns(2)
    reasons = by_reason.multiselect(
        "Reasons", sorted({row["reason"] for row in held}), placeholder="all", key="reason", bind="query-params"
    )
    sources = by_source.multiselect(
        "Sources", sorted({str(row["topic"]) for row in held}), placeholder="all", key="source", bind="query-params"
    )
    listed = [row for row in held if (not reasons or row["reason"] in reasons) and (not sources or str(row["topic"]) in sources)]
    of = f"the newest {formats.count(NEWEST.records)}" if len(held) == NEWEST.records else formats.count(len(held))
    st.caption(f"{formats.count(len(listed))} of {of}, newest first.")
    if not listed:
        return
    left, right = st.columns([3, 2])
    with left:
        _show_list(listed)
    with right:
        _show_counts(listed)
    _show_letter(listed, kafka)


def _show_list(listed: Sequence[Row]) -> None:
    rows = [
        {
            "Letter": row["letter_offset"],
            "Reason": row["reason"],
            "Source": source_of(row),
            "Its time (UTC)": (row["timestamp"] or "")[:19].replace("T", " "),
            "Bytes": row["bytes"],
            "Begins with": row["text"].partition("\n")[0][:100],
        }
        for row in listed
    ]
    columns = {
        "Letter": st.column_config.NumberColumn(format="%d", width=60),
        "Reason": st.column_config.TextColumn(width=190),
        "Source": st.column_config.TextColumn(width=150),
        "Bytes": st.column_config.NumberColumn(format="%,d", width=60),
    }
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=_height(rows), column_config=columns)


def _show_counts(listed: Sequence[Row]) -> None:
    frame = pd.DataFrame([{"Source": str(row["topic"]), "Reason": row["reason"]} for row in listed])
    counts = frame.value_counts().rename("Letters").reset_index()
    largest = int(counts["Letters"].max())
    bar = st.column_config.ProgressColumn(format="%d", min_value=0, max_value=largest, color="primary")
    st.dataframe(
        counts, hide_index=True, height=_height(counts), column_order=("Source", "Letters", "Reason"), column_config={"Letters": bar}
    )


def _height(rows: Sized) -> int | Literal["content"]:
    return "content" if len(rows) < _ROWS_SHOWN else 300


def _show_letter(listed: Sequence[Row], kafka: KafkaCluster | None) -> None:
    by_offset = {row["letter_offset"]: row for row in listed}
    chosen = st.selectbox(
        "Look at",
        list(by_offset),
        format_func=lambda offset: f"letter {offset}: {by_offset[offset]['reason']}, {source_of(by_offset[offset])}",
        key="health-letter",
    )
    if chosen not in by_offset:
        return
    row = by_offset[chosen]
    size = "null" if row["bytes"] is None else formats.several(row["bytes"], "byte", "bytes")
    st.text(f"{row['reason']}\n{source_of(row)}, written there at {row['timestamp'] or 'an unknown time'}, {size}")
    whole = _whole_or_error(kafka, row) if kafka is not None and row["bytes"] else None
    if whole is not None:
        # Not a function: Streamlit refuses a click on its button once this section has been drawn again.
        st.download_button(
            "Download its bytes",
            data=whole,
            file_name=f"dead-letter-{chosen}.bin",
            mime="application/octet-stream",
            on_click="ignore",
            icon=":material/download:",
        )
        if len(whole) > MAX_SHOWN_BYTES:
            st.caption(f"The first {formats.count(MAX_SHOWN_BYTES)} of {formats.count(len(whole))} bytes; the download has all.")
    text = row["text"] if whole is None else readable(whole)
    if text:
        st.code(text, language=None, wrap_lines=True, height="content" if len(text) < _SHORT else _SHOWN_PIXELS)
    else:
        st.caption("It is empty.")


@st.cache_data(max_entries=2, show_spinner="reading it from Kafka")
def _whole(kafka: KafkaCluster, letter_offset: int, at: datetime) -> bytes:  # noqa: ARG001 - tells letters of topics of one name apart
    return whole_letter(kafka, TOPIC, letter_offset) or b""


def _whole_or_error(kafka: KafkaCluster, letter: Row) -> bytes | None:
    try:
        return _whole(kafka, letter["letter_offset"], letter["at"])
    except StreamgaugeError as error:
        st.error(formats.plain(str(error)))
        return None
