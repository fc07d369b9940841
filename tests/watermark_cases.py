"""Random small streams for the rules of docs/watermark.html, and what Spark and the page answer to each.

The streams are made from seeds, the same ones on any machine, so that the file of Spark's answers holds nothing else. `watermark_answers.py` writes it.
"""

import json
import lzma
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, product, zip_longest
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

import playwright

PAGE = Path(__file__).parents[1] / "docs" / "watermark.html"
ANSWERS = Path(__file__).with_suffix(".txt.xz")
"""One line a case: `Answer.line`, in order of KINDS and then of seeds."""
CASES = 40
"""Of each kind."""
SIDE_BY_SIDE = 20
"""So many cases have the same watermarks, which the events of the first one of them move. So Spark answers them in one stream at once."""
STEP = 5
"""Minutes. All times are multiples, so that events often lie exactly at a watermark or a limit."""
FIRST_CLOCK, BETWEEN_CLOCKS, FUTURE = 300, 60, 10
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

    @property
    def is_dead_letter(self) -> bool:
        """Whether it moves no watermark and counts nowhere."""
        return self.is_broken or self.time > self.clock + FUTURE


Case = Sequence[Sequence[Event]]
"""Its batches."""


@dataclass(frozen=True)
class Kind:
    """Settings that many cases share. delay, skew: minutes. judged: by "event" time or by the end of the "window". branches: as in `play`."""

    partitions: int
    branches: int
    delay: int
    skew: int
    judged: str
    mode: str

    def case(self, seed: int) -> Case:
        """The batches of a case: three or four with up to five events each, or some more."""
        leader = seed - seed % SIDE_BY_SIDE
        batches = self._alone(leader, most=5)
        if seed != leader:
            batches = self._beside(batches, self._alone(seed, most=8))
        names = count()
        return [[replace(event, name=str(next(names))) for event in batch] for batch in batches]

    def _alone(self, seed: int, most: int) -> Case:
        random = Random(f"{self.partitions} {self.branches} {self.delay} {self.skew} {self.judged} {self.mode} {seed}")
        sizes = [_below(random, most + 1) for _ in range(3 + _below(random, 4) // 3)]
        return [[self._event(random, batch) for _ in range(size)] for batch, size in enumerate(sizes)]

    def _beside(self, leader: Case, other: Case) -> Case:
        """The events of `leader` that move a watermark, and those of `other` that move none."""
        newest: dict[int, int] = {}
        batches = []
        for of_leader, of_other in zip_longest(leader, other[: len(leader)], fillvalue=()):
            placed = [event for event in of_leader if not event.is_dead_letter]
            moving = {self._branch(event): event for event in sorted(placed, key=attrgetter("time"))}
            moving = {branch: event for branch, event in moving.items() if event.time > newest.get(branch, -1)}
            newest |= {branch: event.time for branch, event in moving.items()}
            still = [event for event in of_other if event.is_dead_letter or event.time <= newest.get(self._branch(event), -1)]
            batches.append([*still, *moving.values()])
        return batches

    def _branch(self, event: Event) -> int:
        return event.partition % self.branches

    def _event(self, random: Random, batch: int) -> Event:
        clock = FIRST_CLOCK + batch * BETWEEN_CLOCKS
        most_behind = (60, 240, 300)[_below(random, 3)]
        time = clock + FUTURE + STEP * (_below(random, most_behind // STEP + 2) - most_behind // STEP)
        return Event("", batch, _below(random, self.partitions), time, clock, is_broken=_below(random, 25) == 0)

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

    watermarks: after each batch, minutes from the beginning of the case. counted: of each event.
    closed: the batch that closes each window, in order; one more than the case has for the next batch, and None for a later one.
    """

    watermarks: Sequence[int | None]
    counted: Sequence[bool]
    closed: Sequence[int | None]

    def line(self, kind: Kind) -> str:
        """The answer as text, without what Spark does not tell: in update mode, which window it has closed."""
        watermarks = ",".join("" if one is None else str(one // STEP) for one in self.watermarks)
        closed = "".join("-" if one is None else str(one) for one in self.closed) if kind.mode == "append" else ""
        return ";".join([watermarks, "".join("01"[one] for one in self.counted), closed])


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


def as_stream(kind: Kind, batches: Case) -> dict[str, Any]:
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
    return Answer(
        watermarks=[batch["after"] for batch in result["batches"]],
        counted=[one["outcome"] in {"in time", "late"} for one in events],
        closed=[window["final"] for window in result["windows"]],
    )


def _below(random: Random, limit: int) -> int:
    """Of all methods of Random, Python promises the same numbers in later versions for `random` alone."""
    return int(random.random() * limit)
