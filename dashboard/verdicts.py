"""How right a table is, and as of when, beside the table: what `streamgauge audit` or `streamgauge verify` found last."""

from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from contract.kafka.cluster import KafkaCluster
from contract.rows import Row
from contract.text import duration
from contract.verdicts import VERDICTS_IN_FULL
from dashboard import formats
from dashboard.reading.reader import follow

TOPIC = VERDICTS_IN_FULL
_COLUMNS = {"where": "Key", "expected": "Expected", "found": "Found"}


def verdict_of(kafka: KafkaCluster, topic: str) -> Row | None:
    """The verdict on the query that writes `topic`. None if it was not verified, or verdicts cannot be read."""
    rows = follow(kafka, TOPIC).snapshot.rows
    return next((row for row in rows if f"topic {topic}" in row["sink"].split(" and ")), None)


def show_verdict(kafka: KafkaCluster, topic: str) -> None:
    """Draws the verdict on `topic`; of a wrong table a button, which opens its wrong rows. Draws nothing if there is none."""
    row = verdict_of(kafka, topic)
    if row is None:
        return
    age = f"{duration(datetime.now(UTC) - row['time'])} ago"
    if row["verdict"] == "right":
        st.badge(f"Verified {age}", icon=":material/verified:", color="green", help=_right(row))
    elif row["verdict"] == "wrong":
        wrong = sum(row["rows"][kind] for kind in ("missing", "extra", "different"))
        label = f"Wrong: {formats.several(wrong, 'row', 'rows')}" if wrong else "Wrong"
        with st.popover(f":red[**{label}**]", icon=":material/dangerous:", key=f"verdict {topic}", width="content"):
            _show_wrong(row, wrong, age)
    else:
        with st.popover(":orange[Could not be verified]", icon=":material/help:", key=f"verdict {topic}", width="content"):
            st.markdown(f"**Could not be verified**, {age}: {formats.plain(row['problem'] or 'no reason is given')}")


def _right(row: Row) -> str:
    rows, left, ahead = (row["rows"][kind] for kind in ("equal", "not_checkable", "ahead"))
    newer = f" {formats.several(ahead, 'row counts', 'rows count')} records after the last checkpoint, too." if ahead else ""
    unknown = f" {formats.several(left, 'row is', 'rows are')} not checkable: Kafka has deleted records of theirs." if left else ""
    return f"{formats.several(rows, 'row equals', 'rows equal')} what the source says.{newer}{unknown}"


def _show_wrong(row: Row, wrong: int, age: str) -> None:
    st.markdown(f"**{formats.plain(row['sink'])}** is not what the source says, {age}.")
    for fault in row["faults"]:
        st.markdown(f"* {formats.plain(fault)}")
    if listed := row["differences"]:
        cells = [{title: formats.plain(one[name]) for name, title in _COLUMNS.items()} for one in listed]
        st.table(pd.DataFrame(cells), hide_index=True)
    if wrong > len(listed):
        st.caption(f"The first {len(listed)} of {formats.several(wrong, 'wrong row', 'wrong rows')}.")
