"""Random small streams for the rules of docs/watermark.html, and what Spark and the page answer to each.

The streams are made from seeds, the same ones on any machine, so that the file of Spark's answers holds nothing else. `watermark_answers.py` writes it.
"""

import json
import lzma
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import playwright

PAGE = Path(__file__).parents[1] / "docs" / "watermark.html"
ANSWERS = Path(__file__).with_suffix(".txt.xz")
"""One line a case: `Answer.line`, in order of KINDS and then of seeds."""
CASES = 500
"""Of each kind."""
STEP = 5
"""Minutes. All times are multiples, so that events often lie exactly at a watermark or a limit."""
FIRST_CLOCK, BETWEEN_CLOCKS, FUTURE = 240, 60, 10
"""Minutes from the beginning of a case: the clock of its first batch, the time from batch to batch, and how far an event may be ahead."""
_NODE = Path(playwright.__file__).parent / "driver" / "node"


@dataclass(frozen=True)
class Event:
    """An event, or a record that is none. time, clock: minutes from the beginning of the case."""

    name: str
    batch: int
    partition: int
    time: int
    clock: int
    is_broken: bool


@dataclass(frozen=True)
class Kind:
    """Settings that many cases share. delay, skew: minutes. judged: by "event" time or by the end of the "window". branches: as in `play`."""

    partitions: int
    branches: int
    delay: int
    skew: int
    judged: str
    mode: str

    def case(self, seed: int) -> list[list[Event]]:
        """The batches of a case: three or four with up to five events each."""
        random = Random(f"{self.partitions} {self.branches} {self.delay} {self.skew} {self.judged} {self.mode} {seed}")
        sizes = [_below(random, 6) for _ in range(3 + _below(random, 4) // 3)]
        names = iter(range(sum(sizes)))
        return [[self._event(random, str(next(names)), batch) for _ in range(size)] for batch, size in enumerate(sizes)]

    def _event(self, random: Random, name: str, batch: int) -> Event:
        clock = FIRST_CLOCK + batch * BETWEEN_CLOCKS
        most_behind = (60, 240, 300)[_below(random, 3)]
        time = clock + FUTURE + STEP * (_below(random, most_behind // STEP + 2) - most_behind // STEP)
        return Event(name, batch, _below(random, self.partitions), time, clock, is_broken=_below(random, 25) == 0)

    @property
    def spacing(self) -> int:
        """Minutes from case to case in one stream: the watermark that a case leaves behind is older than any that the next one sets."""
        return -(-(self.skew + self.delay + 600) // 60) * 60


KINDS = [
    Kind(partitions, branches, delay, skew, judged, mode)
    for (partitions, branches, skew), (delay, judged, mode) in product(
        [(2, 2, 10_080), (2, 2, 60), (3, 3, 30), (3, 1, 10_080)],
        [(10, "event", "append"), (0, "event", "append"), (60, "event", "update"), (10, "window", "append"), (30, "window", "update")],
    )
]


@dataclass(frozen=True)
class Answer:
    """What becomes of a case.

    watermarks: after each batch, minutes from the beginning of the case. counted: of each event. too_late: rows dropped in each batch.
    closed: the batch that closes each window, in order; one more than the case has for the next batch, and None for a later one.
    """

    watermarks: Sequence[int | None]
    counted: Sequence[bool]
    too_late: Sequence[int]
    closed: Sequence[int | None]

    def line(self, kind: Kind) -> str:
        """The answer as text, without what Spark does not tell.

        Spark counts dropped rows after it has grouped them by window where it can. In update mode, it does not tell which window it has closed.
        """
        watermarks = ",".join("" if one is None else str(one // STEP) for one in self.watermarks)
        too_late = "".join(map(str, self.too_late)) if kind.judged == "event" else ""
        closed = "".join("-" if one is None else str(one) for one in self.closed) if kind.mode == "append" else ""
        return ";".join([watermarks, "".join("01"[one] for one in self.counted), too_late, closed])


def read_answers(file: Path = ANSWERS) -> Iterator[tuple[Kind, int, str]]:
    """Kind, seed and line of each case in a file of answers."""
    lines = lzma.decompress(file.read_bytes()).decode().splitlines()
    for number, line in enumerate(lines):
        yield KINDS[number // CASES], number % CASES, line


def played(streams: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page's `play` returns for each of `streams`."""
    return run_in_page("input.map(play)", streams)


def run_in_page(expression: str, given: Any) -> Any:
    """The value of a JavaScript expression on `input`, with the page's functions but without its drawing, in the Node that comes with Playwright."""
    functions = "".join(re.findall(r'<script id="\w+">(.*?)</script>', PAGE.read_text(), re.DOTALL))
    program = f"{functions}\nconst input = JSON.parse(require('fs').readFileSync(0));\nconsole.log(JSON.stringify({expression}));"
    done = subprocess.run([_NODE, "-e", program], input=json.dumps(given), capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_stream(kind: Kind, batches: Sequence[Sequence[Event]]) -> dict[str, Any]:
    """A case as `play` takes it."""
    of_batches = [
        [{"name": e.name, "partition": e.partition, "time": e.time, "clock": e.clock, "isBroken": e.is_broken} for e in batch]
        for batch in batches
    ]
    settings = {"branches": kind.branches, "delay": kind.delay, "skew": kind.skew, "judged": kind.judged, "pauses": False}
    return {**settings, "batches": of_batches}


def answer_of_page(result: dict[str, Any]) -> Answer:
    """The answer in what `play` has returned."""
    events = sorted(result["events"].values(), key=lambda one: int(one["event"]["name"]))
    outcomes = [(one["batch"], one["outcome"]) for one in events]
    return Answer(
        watermarks=[batch["after"] for batch in result["batches"]],
        counted=[outcome in {"in time", "late"} for _, outcome in outcomes],
        too_late=[outcomes.count((batch, "too late")) for batch in range(len(result["batches"]))],
        closed=[window["final"] for window in result["windows"]],
    )


def _below(random: Random, limit: int) -> int:
    """Of all methods of Random, Python promises the same numbers in later versions for `random` alone."""
    return int(random.random() * limit)
