"""How right a table is, and as of when, beside the table: what `streamgauge audit` or `streamgauge verify` found last."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import pandas as pd
import streamlit as st

from contract.topics import VERDICTS, Verdict
from dashboard import formats
from dashboard.reading.reader import follow
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.rows import Count, Fields, Row
from infrastructure.text import duration


class RowsByKind(Fields):
    """How many rows are as the source says, and how many are wrong in each way. not_checkable, ahead: those are no errors."""

    equal: Count
    missing: Count = 0
    extra: Count = 0
    different: Count = 0
    not_checkable: Count = 0
    ahead: Count = 0


class WrongRow(Fields):
    """A wrong row, as text. where: its key. expected, found: what differs; "no such row" if there is to be, or is, none."""

    kind: Literal["missing", "extra", "different"]
    where: str
    expected: str
    found: str


class FullVerdict(Verdict):
    """What was found of a query. sink: what was compared: "topic NAME", and other sinks after " and ". faults: errors other than wrong rows.

    differences: the first wrong rows. problem: why it is not checked.
    """

    rows: RowsByKind  # type: ignore[assignment]  # has more fields
    sink: str = ""
    faults: list[str] = []  # noqa: RUF012 - a declaration, whose value is the default of a field
    differences: list[WrongRow] = []  # noqa: RUF012
    problem: str | None = None


TOPIC = replace(VERDICTS, row=FullVerdict)
"""The topic `verdicts`, with all that pages show of its rows."""
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
