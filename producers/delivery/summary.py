"""Counts what a producer sends, and prints the counts as a table or as one line of JSON."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import orjson
from rich.table import Table

from producers.delivery.events import MS_PER_SECOND, Fact
from producers.delivery.faults import Kind, Record

_BUCKET_MS = 3600 * MS_PER_SECOND
_MEANINGS = {
    "events": "records sent, all in all",
    "distinct_events": "without duplicates and damaged records",
    "late": "sent late, within the watermark",
    "too_late": "sent beyond the watermark",
    "duplicates": "sent a second time",
    "corrupt": "damaged, so many dead letters to expect",
    "undelivered": "not acknowledged by Kafka",
    "seconds": "until the last acknowledgement",
    "events_per_second": "records a second",
}


@dataclass(frozen=True)
class Summary:
    """The counts of a run. `events` = `distinct_events` + `duplicates` + `corrupt`.

    facts: distinct facts of all usable records. facts_too_late: those reported only by too-late records. A count with a watermark is
    therefore between `facts` - `facts_too_late` and `facts`. The output uses the domain's name for both, such as people_seen.
    more: further counts of a domain, and their meanings, by name.
    """

    events: int
    distinct_events: int
    facts: int
    facts_too_late: int
    late: int
    too_late: int
    duplicates: int
    corrupt: int
    undelivered: int
    seconds: float
    events_per_second: float
    more: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def named(self, facts: str) -> dict[str, int | float]:
        """The counts by name. facts: replaces "facts" in the names."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "more"}
        more = {name: number for name, (number, _) in self.more.items()}
        return {**{name.replace("facts", facts): value for name, value in values.items()}, **more}

    def as_json(self, facts: str) -> str:
        """The counts as one line of JSON."""
        return orjson.dumps(self.named(facts)).decode()

    def as_table(self, facts: str, meaning_of_facts: str) -> Table:
        """The counts as a table with their meanings."""
        meanings = {**_MEANINGS, facts: meaning_of_facts, f"{facts}_too_late": "of these, known by too-late records only"}
        meanings |= {name: meaning for name, (_, meaning) in self.more.items()}
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(justify="right")
        table.add_column()
        table.add_column(style="dim")
        for name, value in self.named(facts).items():
            table.add_row(f"{value:,}", name, meanings[name])
        return table


class Tally:
    """Counts records as they are sent.

    keep_ms: facts are kept until the stream is this far past them, which bounds the memory of an endless run; None: forever.
    """

    def __init__(self, keep_ms: int | None = None) -> None:
        self.kinds: Counter[Kind] = Counter()
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
        """The counts so far."""
        events = self.kinds.total()
        duplicates, corrupt = self.kinds[Kind.DUPLICATE], self.kinds[Kind.CORRUPT]
        return Summary(
            events=events,
            distinct_events=events - duplicates - corrupt,
            facts=self._forgotten + sum(len(facts) for facts in self._recent.values()),
            facts_too_late=self._forgotten_too_late + sum(_too_late(facts) for facts in self._recent.values()),
            late=self.kinds[Kind.LATE],
            too_late=self.kinds[Kind.TOO_LATE],
            duplicates=duplicates,
            corrupt=corrupt,
            undelivered=undelivered,
            seconds=round(seconds, 3),
            events_per_second=round(events / seconds, 1) if seconds > 0 else 0.0,
        )

    def _forget_before(self, newest_hour: int) -> None:
        if self._keep_ms is None:
            return
        for hour in [hour for hour in self._recent if (newest_hour - hour - 1) * _BUCKET_MS > self._keep_ms]:
            facts = self._recent.pop(hour)
            self._forgotten += len(facts)
            self._forgotten_too_late += _too_late(facts)


def _too_late(facts: dict[Fact, bool]) -> int:
    return sum(not in_time for in_time in facts.values())
