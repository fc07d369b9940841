"""Draws docs/architecture.svg from the declared domains: `python docs/architecture.py`. It follows the reader's light or dark theme."""

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from contract.domains import DOMAINS
from contract.topics import DEAD_LETTERS

DRAWING = Path(__file__).with_suffix(".svg")
WIDTH, LINE, BOX, GAP, TOP = 1000, 22, 34, 24, 40
PRODUCERS, SOURCES, SPARK, RESULTS, READERS = (10, 110), (170, 130), (360, 200), (620, 200), (880, 110)
"""x and width of each column."""
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
.title { font-weight: 600; }
.quiet { fill: #59636e; font-size: 12px; }
rect { fill: #ffffff; stroke: #59636e; stroke-width: 1.2; rx: 6px; }
.kafka { fill: #dbeafe; stroke: #2563eb; }
.spark { fill: #ffedd5; stroke: #c2410c; }
path { fill: none; stroke: #59636e; stroke-width: 1.5; marker-end: url(#tip); }
.tip { fill: #59636e; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .quiet { fill: #b1bac4; }
  rect { fill: #161b22; stroke: #9198a1; }
  .kafka { fill: #12284c; stroke: #6ea8fe; }
  .spark { fill: #432010; stroke: #fb923c; }
  path { stroke: #b1bac4; }
  .tip { fill: #b1bac4; }
}
"""


def drawing() -> str:
    """The SVG: a row for each domain, and below them what all of them share."""
    shapes, y = [], TOP
    for domain in DOMAINS:
        results = [topic.plain_name for topic in domain.results]
        height = max(BOX, LINE * len(results) + 12)
        shapes += [
            _box(PRODUCERS, y, height, [domain.name]),
            _arrow(PRODUCERS, SOURCES, y + height / 2),
            _box(SOURCES, y, height, [topic.plain_name for topic in domain.sources], "kafka"),
            _arrow(SOURCES, SPARK, y + height / 2),
            _arrow(SPARK, RESULTS, y + height / 2),
            _box(RESULTS, y, height, results, "kafka"),
            _arrow(RESULTS, READERS, y + height / 2),
        ]
        y += height + GAP
    shared = [(f"{DEAD_LETTERS.plain_name}: what cannot be used, and why", "kafka"), ("the lake: every row, as Parquet or Delta", "")]
    wide = RESULTS[0], READERS[0] + READERS[1] - RESULTS[0]
    for text, kind in shared:
        shapes += [_arrow(SPARK, RESULTS, y + BOX / 2), _box(wide, y, BOX, [text], kind)]
        y += BOX + GAP
    height = y - GAP - TOP
    readers = height - len(shared) * (BOX + GAP)
    steps = ["source", "decode", "watermark", "transform", "sink"]
    return _svg(
        y,
        [
            _titles({PRODUCERS: "producers", SOURCES: "Kafka", SPARK: "pipeline: Spark", RESULTS: "Kafka, compacted", READERS: "readers"}),
            _box(SPARK, TOP, height, steps, "spark"),
            *shapes,
            _box(READERS, TOP, readers, ["dashboard", "report", "verify", "your own"]),
        ],
    )


def _svg(height: float, shapes: Sequence[str]) -> str:
    title = (
        "Producers write source topics; Spark decodes, transforms and writes result topics, dead letters and the lake; readers show them"
    )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z" style="marker-end:none;stroke:none"/></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"><title>{title}</title>'
    return "\n".join([head, f"<style>{STYLE}</style><defs>{tip}</defs>", *shapes, "</svg>", ""])


def _titles(columns: dict[tuple[int, int], str]) -> str:
    return "\n".join(f'<text class="quiet" x="{x + width / 2:g}" y="24">{escape(text)}</text>' for (x, width), text in columns.items())


def _box(column: tuple[int, int], y: float, height: float, lines: Sequence[str], kind: str = "") -> str:
    x, width = column
    first = y + height / 2 - LINE * (len(lines) - 1) / 2 + 5
    texts = [f'<text x="{x + width / 2:g}" y="{first + LINE * number:g}">{escape(line)}</text>' for number, line in enumerate(lines)]
    return "\n".join([f'<rect class="{kind}" x="{x}" y="{y:g}" width="{width}" height="{height:g}"/>', *texts])


def _arrow(left: tuple[int, int], right: tuple[int, int], y: float) -> str:
    return f'<path d="M{left[0] + left[1] + 2} {y:g}H{right[0] - 3}"/>'


if __name__ == "__main__":
    DRAWING.write_text(drawing())
