"""The check of dead letters: those of committed records that are as they must be are counted, and forgotten."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from audit.checks.check import Progress, Watch, are_lost
from audit.checks.dead_letters import DeadLetters, Letter, Letters, Origin, expected_letters, kinds_of_letters, letters_of, record_named
from audit.checks.store import Store
from audit.reading.result_topic import ends_of
from audit.time_range import TimeRange
from audit.verdicts.comparison import Kind, differences
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import CheckpointPlace
from contract.topics import DEAD_LETTERS


@dataclass
class LettersProgress(Progress):
    """What is known of letters. found: those that are not counted yet. oldest_ms: see letters.Letters. counted: how many are, by kind."""

    found: dict[Origin, list[Letter]] = field(default_factory=dict)
    oldest_ms: int | None = None
    counted: Counter[Kind] = field(default_factory=Counter)


class LettersCheck(Watch[LettersProgress]):
    """The check of dead letters. span: only of those of records with Kafka timestamps within it."""

    def __init__(self, letters: DeadLetters, place: CheckpointPlace, store: Store, span: TimeRange | None = None) -> None:
        super().__init__(letters.sink, place, store, span)
        self._letters = replace(letters, reasons=store.own(letters.reasons, self.name))
        self.facts = [self._letters.facts]
        self._kinds: Mapping[Origin, Kind] = {}

    def seen(self) -> Offsets:
        return ends_of(DEAD_LETTERS, self.settings)

    def has_lost(self) -> bool:
        return are_lost(self.prefix.seen, self.known.of_topic)

    def begin(self, query_id: str | None) -> LettersProgress:
        self.store.database.execute(f"DROP TABLE IF EXISTS {self._letters.facts.name}")
        return LettersProgress(query_id, dict(self.prefix.kept))

    def read(self) -> None:
        known, prefix = self.known, self.prefix
        if prefix.seen == known.of_topic:
            return
        new = letters_of(self.settings, prefix.topics, self._letters.reader, prefix.seen, known.of_topic)
        if not known.of_topic:
            known.oldest_ms = new.oldest_ms
        for origin, letters in new.by_origin.items():
            own = known.found.setdefault(origin, [])
            own += [letter for letter in letters if letter not in own]
        known.of_topic = dict(prefix.seen)

    def verdict(self) -> Verdict:
        """The letters compared, by their records."""
        letters, known = self._letters, self.known
        expected, timestamps = expected_letters(self.store.database, letters)
        kinds = self._kinds = kinds_of_letters(expected, timestamps, Letters(known.found, known.oldest_ms), self.prefix)
        wrong = differences(kinds, {origin: tuple(found) for origin, found in known.found.items()}, expected, record_named)
        lost = f"{letters.sink} has lost its oldest letters: those of records before the oldest one left are not checkable"
        counts = Counter(kinds.values()) + known.counted
        return self.prefix.verdict(letters, counts, [] if known.oldest_ms is None else [lost], differences=wrong)

    def keep(self) -> None:
        """Counts the letters that are done, and forgets them."""
        known, kinds, ends = self.known, self._kinds, self.prefix.committed_ends
        done = [one for one, kind in kinds.items() if kind in {"equal", "not_checkable"} and one[2] < ends.get(one[:2], 0)]
        for origin in done:
            known.counted[kinds[origin]] += 1
            known.found.pop(origin, None)
        self.store.forget(self._letters.facts.name, done)
        self.batches.forget(ends, self.prefix.committed)
        self.store.keep(self.name, known)
