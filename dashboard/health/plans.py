"""The plan of a query on the Health page, drawn from the steps that Spark reports."""

import json
import textwrap
from collections.abc import Sequence

import streamlit as st

from contract.rows import Row

_LINE_CHARACTERS, _LINES = 44, 2
_SOURCE, _SHUFFLE, _STATE, _OTHER = "#dbeafe", "#fef3c7", "#ede9fe", "#f4f6f8"
_KINDS = {
    "Scan": (_SOURCE, "reads"),
    "WriteTo": (_SOURCE, "writes"),
    "Exchange": (_SHUFFLE, "moves rows between tasks"),
    "State": (_STATE, "keeps state between batches"),
    "Streaming": (_STATE, "keeps state between batches"),
}
"""What part of a step's name tells of it: its colour, and what it does."""


def show_plan(states: Sequence[Row]) -> None:
    """Draws the section. states: the rows of topic `query-states`, of which those of earlier versions have no plan."""
    plans = {state["query"]: state["plan"] for state in states if state["plan"]}
    if not plans:
        return
    st.header("Plan", anchor=False)
    st.caption("The steps of a micro-batch, as Spark runs them.")
    query = st.selectbox("Query", sorted(plans), index=None, placeholder="choose one", key="plan", bind="query-params")
    if query in plans:
        st.graphviz_chart(drawing(plans[query]), width="content")


def drawing(plan: Sequence[Row]) -> str:
    """The plan in the language of Graphviz, from the source down to the result."""
    lines = ['bgcolor="transparent"', 'node [shape=box style="filled,rounded" fontname="sans-serif" fontsize=11 color="#7f8c9d"]']
    lines.append('edge [color="#7f8c9d"]')
    for place, step in enumerate(plan):
        colour, does = next((kind for part, kind in _KINDS.items() if part in step["name"]), (_OTHER, ""))
        name = f"{step['name']}: {does}" if does else step["name"]
        detail = textwrap.wrap(step["detail"], _LINE_CHARACTERS, max_lines=_LINES, placeholder=" ...")
        lines.append(f'{place} [label={_quoted(chr(10).join([name, *detail]))} tooltip={_quoted(step["detail"])} fillcolor="{colour}"]')
        lines += [f"{given} -> {place}" for given in step["inputs"]]
    return "digraph {\n" + "\n".join(lines) + "\n}"


def _quoted(text: str) -> str:
    """A text from a topic, never markup: Graphviz knows the quotes and escapes of JSON, and reads an escaped backslash as one."""
    return json.dumps(text, ensure_ascii=False)
