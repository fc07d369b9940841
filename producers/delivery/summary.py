"""Counts what a producer sends, and prints the counts as a table or as one line of JSON."""

from collections import Counter

import orjson
from rich.table import Table

from producers.delivery.events import MS_PER_SECOND, Fact
from producers.delivery.faults import Kind, Record

_BUCKET_MS = 3600 * MS_PER_SECOND

Summary = dict[str, tuple[float, str]]
"""The counts of a run: number and meaning by name. `events` = `distinct_events` + `duplicates` + `corrupt`."""


def as_json(summary: Summary) -> str:
    """The counts as one line of JSON."""
    return orjson.dumps({name: number for name, (number, _) in summary.items()}).decode()


def as_table(summary: Summary) -> Table:
    """The counts as a table with their meanings."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right")
    table.add_column()
    table.add_column(style="dim")
    for name, (number, meaning) in summary.items():
        table.add_row(f"{number:,}", name, meaning)
    return table


class Tally:
    """Counts records as they are sent. facts, meaning: name and meaning of the facts that they report, such as people_seen.

    keep_ms: facts are kept until the stream is this far past them, which bounds the memory of an endless run; None: forever.
    """

    def __init__(self, facts: str, meaning: str, keep_ms: int | None = None) -> None:
        self.kinds: Counter[Kind] = Counter()
        self._facts, self._meaning = facts, meaning
        self._keep_ms = keep_ms
        self._forgotten = self._forgotten_too_late = 0
        # By hour: each fact, and whether it was reported in time.
        self._recent: dict[int, dict[Fact, bool]] = {}

    def count(self, record: Record) -> None:
        """Counts a record that was sent."""
        kind, event = record
        self.kinds[kind] += 1
        for fact in event.facts:
            hour = fact[1] // _BUCKET_MS
            if hour not in self._recent:
                self._recent[hour] = {}
                self._forget_before(hour)
            facts = self._recent[hour]
            facts[fact] = facts.get(fact, False) or kind is not Kind.TOO_LATE

    def summary(self, seconds: float, undelivered: int = 0) -> Summary:
        """The counts so far. A fact counts once; a count with a watermark has all facts, or lacks some that only too-late records report."""
        events, duplicates, corrupt = self.kinds.total(), self.kinds[Kind.DUPLICATE], self.kinds[Kind.CORRUPT]
        facts = self._forgotten + sum(len(facts) for facts in self._recent.values())
        too_late = self._forgotten_too_late + sum(_too_late(facts) for facts in self._recent.values())
        return {
            "events": (events, "records sent, all in all"),
            "distinct_events": (events - duplicates - corrupt, "without duplicates and damaged records"),
            self._facts: (facts, self._meaning),
            f"{self._facts}_too_late": (too_late, "of these, known by too-late records only"),
            "late": (self.kinds[Kind.LATE], "sent late, within the watermark"),
            "too_late": (self.kinds[Kind.TOO_LATE], "sent beyond the watermark"),
            "duplicates": (duplicates, "sent a second time"),
            "corrupt": (corrupt, "damaged, so many dead letters to expect"),
            "undelivered": (undelivered, "not acknowledged by Kafka"),
            "seconds": (round(seconds, 3), "until the last acknowledgement"),
            "events_per_second": (round(events / seconds, 1) if seconds > 0 else 0.0, "records a second"),
        }

    def _forget_before(self, newest_hour: int) -> None:
        if self._keep_ms is None:
            return
        for hour in [hour for hour in self._recent if (newest_hour - hour - 1) * _BUCKET_MS > self._keep_ms]:
            facts = self._recent.pop(hour)
            self._forgotten += len(facts)
            self._forgotten_too_late += _too_late(facts)


def _too_late(facts: dict[Fact, bool]) -> int:
    return sum(not in_time for in_time in facts.values())
