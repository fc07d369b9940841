"""The check of dead letters. Correct letters of committed records are counted, and then deleted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from audit.checks.check import IncrementalCheck, Progress, has_gap
from audit.checks.dead_letters import DeadLetters, Letter, Letters, expected_letters, kinds_of_letters, letters_of, record_named
from audit.checks.store import Store
from audit.reading.records import Origin
from audit.reading.result_topic import ends_of
from audit.time_range import TimeRange
from audit.verdicts.comparison import Kind, differences
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import CheckpointPlace
from contract.topics import DEAD_LETTERS


@dataclass
class LettersProgress(Progress):
    """How far the check of dead letters has come. uncounted: letters by their records. oldest_ms: see Letters. counted: how many, by kind."""

    uncounted: dict[Origin, list[Letter]] = field(default_factory=dict)
    oldest_ms: int | None = None
    counted: Counter[Kind] = field(default_factory=Counter)


class LettersCheck(IncrementalCheck[LettersProgress]):
    """The check of dead letters. span: only of those of records with Kafka timestamps within it."""

    def __init__(self, letters: DeadLetters, place: CheckpointPlace, store: Store, span: TimeRange | None = None) -> None:
        super().__init__(letters.sink, place, store, span)
        self._letters = replace(letters, reasons=store.own_facts(letters.reasons, self.name))
        self.facts = [self._letters.facts]
        self._kinds: Mapping[Origin, Kind] = {}

    def read_sink(self) -> Offsets:
        return ends_of(DEAD_LETTERS, self.settings)

    def sink_has_lost_rows(self) -> bool:
        return has_gap(self.read_range.sink_state, self.progress.sink_offsets)

    def start_over(self, query_id: str | None) -> LettersProgress:
        self.store.database.execute(f"DROP TABLE IF EXISTS {self._letters.facts.name}")
        return LettersProgress(query_id, dict(self.read_range.retained_offsets))

    def read(self) -> None:
        progress, read_range = self.progress, self.read_range
        if read_range.sink_state == progress.sink_offsets:
            return
        new = letters_of(self.settings, read_range.topics, self._letters.reader, read_range.sink_state, progress.sink_offsets)
        progress.oldest_ms = progress.oldest_ms if new.oldest_ms is None else new.oldest_ms
        for origin, letters in new.by_origin.items():
            of_record = progress.uncounted.setdefault(origin, [])
            of_record += [letter for letter in letters if letter not in of_record]
        progress.sink_offsets = dict(read_range.sink_state)

    def verdict(self) -> Verdict:
        """Compares the letters by their records."""
        letters, progress = self._letters, self.progress
        expected, timestamps = expected_letters(self.store.database, letters)
        kinds = self._kinds = kinds_of_letters(expected, timestamps, Letters(progress.uncounted, progress.oldest_ms), self.read_range)
        wrong = differences(kinds, {origin: tuple(found) for origin, found in progress.uncounted.items()}, expected, record_named)
        lost = f"{letters.sink} has lost its oldest letters: those of records before the oldest one left are not checkable"
        counts = Counter(kinds.values()) + progress.counted
        return self.read_range.verdict(letters, counts, [] if progress.oldest_ms is None else [lost], differences=wrong)

    def save(self) -> None:
        """Counts the letters that are correct or not checkable, and deletes them."""
        progress, kinds, ends = self.progress, self._kinds, self.read_range.committed_ends
        done = [origin for origin, kind in kinds.items() if kind in {"equal", "not_checkable"} and origin[2] < ends.get(origin[:2], 0)]
        for origin in done:
            progress.counted[kinds[origin]] += 1
            progress.uncounted.pop(origin, None)
        self.store.delete(self._letters.facts.name, done)
        self.batches.forget(ends, self.read_range.committed)
        self.store.save(self.name, progress)
