"""The pipeline as it flows, in the language of Graphviz: from each topic through the queries that read it to their tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contract.domains.domain import Domain
from contract.query_status import FAILED, IDLE, RESTARTING, RUNNING, SILENT, STARTING, STOPPED
from contract.topics import DEAD_LETTERS
from dashboard import formats

FILES = "files"
_WIDTH = 9
"""Texts on arrows are at least as wide as this many digits, so that the drawing keeps its size while they change."""
_Colours = tuple[str, str]
_PLAIN: _Colours = ("#f4f6f8", "#1a222c")
_GOOD, _WAITS, _WARNING, _BAD = ("#ccebe6", "#134e48"), _PLAIN, ("#fde68a", "#78350f"), ("#fecaca", "#991b1b")
_STATES: dict[str, _Colours] = {
    RUNNING: _GOOD,
    IDLE: _WAITS,
    STARTING: _WAITS,
    RESTARTING: _WARNING,
    STOPPED: _WARNING,
    FAILED: _BAD,
    SILENT: _BAD,
}
"""Of a query in each state: light and dark."""
_TEXT, _LINE = ("#111827", "#e5e9ef"), "#7f8c9d"


@dataclass(frozen=True)
class Flow:
    """One query. topics: that it reads. lag: in records; None if unknown, as rows_in and rows_out, per second. table: where it writes."""

    topics: Sequence[str]
    query: str
    state: str
    rows_in: float | None
    lag: int | None
    rows_out: float | None
    table: str


def table_of(query: str, domain: Domain | None) -> str:
    """The plain name of the topic that a query writes, or FILES."""
    if query.endswith(f"-{DEAD_LETTERS.plain_name}"):
        return DEAD_LETTERS.plain_name
    if domain is None:
        return FILES
    return next((topic.plain_name for topic in domain.results if topic.query == query), FILES)


def drawing(flows: Iterable[Flow], *, prefix: str = "", is_dark: bool) -> str:
    """The drawing, from left to right. Names come from topics: they are texts in it and never markup. prefix: that the names of queries and tables are shown without."""
    text = _TEXT[is_dark]
    node = f'shape=box style="filled,rounded" fontname="sans-serif" fontsize=11 height=0.4 margin="0.06,0.03" color="{_LINE}"'
    lines = [
        'rankdir=LR bgcolor="transparent" nodesep=0.12 ranksep=0.12 margin=0.02',
        f'node [{node} fontcolor="{text}" fillcolor="{_PLAIN[is_dark]}"]',
        f'edge [color="{_LINE}" arrowsize=0.6 fontname="sans-serif" fontsize=10 fontcolor="{text}"]',
    ]
    places: dict[tuple[str, str], str] = {}

    def place(kind: str, name: str, shown: str) -> str:
        if (kind, name) not in places:
            places[kind, name] = f"{kind}{len(places)}"
            lines.append(f"{places[kind, name]} [label={formats.graphviz_text(shown)} tooltip={formats.graphviz_text(name)}]")
        return places[kind, name]

    for number, flow in enumerate(flows):
        label, colour = formats.graphviz_text(f"{flow.query.removeprefix(prefix)}\n{flow.state}"), _STATES[flow.state][is_dark]
        lines.append(f'query{number} [label={label} tooltip={formats.graphviz_text(flow.query)} fillcolor="{colour}"]')
        arrow = "\n".join(part for part in (_rate(flow.rows_in), _lag(flow.lag)) if part)
        lines += [f"{place('topic', topic, topic)} -> query{number} [label={formats.graphviz_text(arrow)}]" for topic in flow.topics]
        lines.append(
            f"query{number} -> {place('table', flow.table, flow.table.removeprefix(prefix))} [label={formats.graphviz_text(_rate(flow.rows_out))}]"
        )
    return "digraph {\n" + "\n".join(lines) + "\n}"


def _rate(per_second: float | None) -> str:
    return "" if per_second is None else _centered(f"{formats.rate(per_second)}/s")


def _lag(lag: int | None) -> str:
    return "" if lag is None else _centered(f"lag {lag:,}")


def _centered(text: str) -> str:
    return f"{text:\N{FIGURE SPACE}^{_WIDTH}}"
