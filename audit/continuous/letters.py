"""The continuous check of dead letters: those of committed records that are as they must be are counted, and forgotten."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from audit.checks import letters_verdict
from audit.comparison import Kind
from audit.continuous.store import Store
from audit.continuous.watch import Progress, Watch, are_lost
from audit.letters import DeadLetters, Letter, Letters, Origin, expected_letters, kinds_of_letters, letters_of
from audit.prefix import Prefix
from audit.records import RecordReader
from audit.result_topic import ends_of
from audit.verdict import Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import CheckpointPlace
from contract.settings import Settings
from contract.topics import DEAD_LETTERS


@dataclass
class LettersProgress(Progress):
    """What is known of letters. found: those that are not counted yet. oldest_ms: see letters.Letters. counted: how many are, by kind."""

    found: dict[Origin, list[Letter]] = field(default_factory=dict)
    oldest_ms: int | None = None
    counted: Counter[Kind] = field(default_factory=Counter)


class LettersWatch(Watch[LettersProgress]):
    """The check of dead letters."""

    def __init__(
        self, letters: DeadLetters, name: str, place: CheckpointPlace, store: Store, records: RecordReader, settings: Settings
    ) -> None:
        super().__init__(name, place, store, records, settings)
        self._letters = replace(letters, reasons=replace(letters.reasons, name=f"facts_{name}"))

    def seen(self) -> Offsets:
        return ends_of(DEAD_LETTERS, self.settings)

    def has_lost(self, known: LettersProgress, seen: Offsets) -> bool:
        return are_lost(seen, known.of_topic)

    def compare(self, prefix: Prefix[Offsets], known: LettersProgress) -> Verdict:
        """Reads what is new, and forgets the letters that are as they must be."""
        self.load([self._letters.facts], prefix, known, prefix.ends)
        self._read_topic(known, prefix)
        expected, timestamps = expected_letters(self.store.database, self._letters)
        found = Letters(known.found, known.oldest_ms)
        kinds = kinds_of_letters(expected, timestamps, found, prefix)
        verdict = letters_verdict(self._letters, prefix, expected, found, kinds, known.counted)
        self._count(known, kinds, prefix.committed_ends)
        self.batches.forget(prefix.committed_ends, prefix.committed)
        self.store.keep(self.name, known)
        return verdict

    def begin(self, query_id: str | None, prefix: Prefix[Any]) -> LettersProgress:
        self.store.database.execute(f"DROP TABLE IF EXISTS {self._letters.facts.name}")
        return LettersProgress(query_id, dict(prefix.kept))

    def _read_topic(self, known: LettersProgress, prefix: Prefix[Offsets]) -> None:
        if prefix.seen == known.of_topic:
            return
        new = letters_of(self.settings, prefix.topics, self._letters.reader, prefix.seen, known.of_topic)
        if not known.of_topic:
            known.oldest_ms = new.oldest_ms
        for origin, letters in new.by_origin.items():
            own = known.found.setdefault(origin, [])
            own += [letter for letter in letters if letter not in own]
        known.of_topic = dict(prefix.seen)

    def _count(self, known: LettersProgress, kinds: Mapping[Origin, Kind], committed_ends: Offsets) -> None:
        """Counts the letters that are done, and forgets them."""
        done = [one for one, kind in kinds.items() if kind in {"equal", "not_checkable"} and one[2] < committed_ends.get(one[:2], 0)]
        for origin in done:
            known.counted[kinds[origin]] += 1
            known.found.pop(origin, None)
        self.store.forget(self._letters.facts.name, done)
