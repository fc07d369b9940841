"""Counts what a producer sends, and prints the counts as a table or as one line of JSON."""

from collections import Counter, OrderedDict

import orjson
from rich.table import Table

from producers.delivery.events import Fact
from producers.delivery.faults import Kind, Record

Summary = dict[str, tuple[float, str]]
"""The counts of a run: number and meaning by name. `events` = `distinct_events` + `duplicates` + `corrupt`."""


def as_json(summary: Summary) -> str:
    return orjson.dumps({name: number for name, (number, _) in summary.items()}).decode()


def as_table(summary: Summary) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right")
    table.add_column()
    table.add_column(style="dim")
    for name, (number, meaning) in summary.items():
        table.add_row(f"{number:,}", name, meaning)
    return table


class Tally:
    """Counts records as they are sent. facts, meaning: name and meaning of the facts that they report, such as people_seen.

    keep_ms: facts are kept until the stream is this far from them, which bounds the memory of an endless run; None: forever.
    """

    def __init__(self, facts: str, meaning: str, keep_ms: int | None = None) -> None:
        self.kinds: Counter[Kind] = Counter()
        self._facts, self._meaning = facts, meaning
        self._keep_ms = keep_ms
        self._forgotten = self._forgotten_too_late = 0
        self._recent: OrderedDict[Fact, bool] = OrderedDict()  # whether it was reported in time

    def count(self, record: Record) -> None:
        kind, event = record
        self.kinds[kind] += 1
        for fact in event.facts:
            self._recent[fact] = self._recent.get(fact, False) or kind is not Kind.TOO_LATE
            # A fact of the far future, too: it would keep all that come after it.
            while self._keep_ms is not None and abs(next(iter(self._recent))[1] - fact[1]) > self._keep_ms:
                _, is_in_time = self._recent.popitem(last=False)
                self._forgotten += 1
                self._forgotten_too_late += not is_in_time

    def summary(self, seconds: float, undelivered: int = 0) -> Summary:
        """The counts so far. A fact counts once; a count with a watermark has all facts, or lacks some that only too-late records report."""
        events, duplicates, corrupt = self.kinds.total(), self.kinds[Kind.DUPLICATE], self.kinds[Kind.CORRUPT]
        facts = self._forgotten + len(self._recent)
        too_late = self._forgotten_too_late + sum(not is_in_time for is_in_time in self._recent.values())
        return {
            "events": (events, "records sent in total"),
            "distinct_events": (events - duplicates - corrupt, "without duplicates and corrupt records"),
            self._facts: (facts, self._meaning),
            f"{self._facts}_too_late": (too_late, "of these, only in records sent too late to count"),
            "late": (self.kinds[Kind.LATE], "sent late, within the watermark"),
            "too_late": (self.kinds[Kind.TOO_LATE], "sent after the watermark"),
            "duplicates": (duplicates, "sent a second time"),
            "corrupt": (corrupt, "corrupt copies, each of which becomes a dead letter"),
            "undelivered": (undelivered, "not acknowledged by Kafka"),
            "seconds": (round(seconds, 3), "until the last acknowledgement"),
            "events_per_second": (round(events / seconds, 1) if seconds > 0 else 0.0, "records per second"),
        }
