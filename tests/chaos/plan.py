"""Which faults happen in a round of chaos and when, and what must hold after it."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

SHORTEST_SECONDS, LONGEST_SECONDS = 2, 8
"""How long a fault lasts."""
FAULTS_OF_A_ROUND = 2
FACTS = {
    "nest": ("nest-camera-stats", "people_seen"),
    "taxi": ("taxi-borough-stats", "trips"),
    "wikimedia": ("wikimedia-edit-stats", "edits"),
}
"""By domain, the query that counts its facts, and what its producer calls them."""


class Kind(Enum):
    """What can happen, in words."""

    KILL_PYTHON = "kill -9 of the pipeline"
    KILL_JVM = "kill -9 of the pipeline's JVM"
    KILL_KAFKA = "kill -9 of Kafka"
    TEAR_SEGMENTS = "kill -9 of Kafka in the middle of a write"
    KILL_REGISTRY = "kill -9 of the registry"
    KILL_PRODUCER = "kill -9 of a producer"
    KILL_ALL = "kill -9 of everything at once"
    FREEZE_PIPELINE = "the pipeline freezes"
    FREEZE_KAFKA = "Kafka freezes"
    PAUSE = "the producers pause"
    CUT_KAFKA = "the network to Kafka is cut"
    CUT_REGISTRY = "the network to the registry is cut"
    FULL_DISK = "the disk is full"
    SLOW_DISK = "the disk is slow"
    ODD_VALUES = "another program sends odd values"
    AGAIN = "another program sends records again, with a clock that is a day wrong"
    ADD_PARTITION = "a source topic gets a partition more"
    NEW_SCHEMA = "a producer writes with a newer schema"


LASTING = {
    Kind.FREEZE_PIPELINE,
    Kind.FREEZE_KAFKA,
    Kind.PAUSE,
    Kind.CUT_KAFKA,
    Kind.CUT_REGISTRY,
    Kind.FULL_DISK,
    Kind.SLOW_DISK,
}


@dataclass(frozen=True)
class Fault:
    """Something bad that happens at `at_second` of the round; `seconds` is how long it lasts, 0 for an event."""

    at_second: float
    kind: Kind
    seconds: float = 0


def kinds_of_rounds(rng: random.Random, possible: Sequence[Kind]) -> Iterator[list[Kind]]:
    """The kinds of faults of each round, endlessly: dealt from all that are possible, so that none comes twice before each has come once."""
    deck: list[Kind] = []
    while True:
        if len(deck) < FAULTS_OF_A_ROUND:
            deck = [*deck, *rng.sample(possible, len(possible))]
        yield [deck.pop(0) for _ in range(FAULTS_OF_A_ROUND)]


def faults(rng: random.Random, kinds: Collection[Kind], seconds: float) -> list[Fault]:
    """Faults of these kinds in a round in which producers send for `seconds`, in order of time."""

    def lasts(kind: Kind) -> float:
        return round(rng.uniform(SHORTEST_SECONDS, LONGEST_SECONDS), 1) if kind in LASTING else 0

    # A schema is chosen when a producer starts.
    found = [Fault(0 if kind is Kind.NEW_SCHEMA else round(rng.uniform(0.1, 0.9) * seconds, 1), kind, lasts(kind)) for kind in kinds]
    return sorted(found, key=lambda fault: fault.at_second)


@dataclass(frozen=True)
class Total:
    """What has been found of a domain's records since the start: records read, dead letters, facts told apart, and those that came too late."""

    records: int = 0
    letters: int = 0
    facts: int = 0
    late: int = 0


def totals(verified: Mapping[str, Mapping[str, Any]]) -> dict[str, Total]:
    """By domain. verified: by query, what `streamgauge verify` found."""
    return {
        domain: Total(
            verified[query]["records"],
            verified[f"{domain}-dead-letters"]["rows"]["equal"],
            verified[query]["lateness"]["events"],
            verified[query]["lateness"]["late_events"],
        )
        for domain, (query, _) in FACTS.items()
    }


def not_right(verified: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each query whose rows `streamgauge verify` did not find right, with its reason."""
    wrong = {query: found for query, found in verified.items() if found["verdict"] != "right"}
    return [
        f"{query}: verify says {found['verdict']}: {found.get('problem') or found.get('differences')}" for query, found in wrong.items()
    ]


def disagreements(sent: Mapping[str, Mapping[str, Any]], before: Mapping[str, Total], now: Mapping[str, Total]) -> list[str]:
    """What is not as it must be, a line each; none: the round is right.

    sent: the summaries of the producers that ended by themselves, by domain, of those alone to whose topic nothing else wrote. Each record must be
    read, each corrupt one must be a dead letter, and each fact must be counted once, or all of its records have come too late.
    """
    wrong = []
    for domain, summary in sent.items():
        old, new, (_, facts) = before[domain], now[domain], FACTS[domain]
        expected = {
            "records undelivered": (summary["undelivered"], 0),
            "records read": (new.records - old.records, summary["events"]),
            "dead letters": (new.letters - old.letters, summary["corrupt"]),
            f"{facts} told apart": (new.facts - old.facts, summary[facts]),
        }
        wrong += [f"{domain}: {found} {what}, {wanted} sent" for what, (found, wanted) in expected.items() if found != wanted]
        if (late := new.late - old.late) > summary[f"{facts}_too_late"]:
            wrong.append(f"{domain}: {late} {facts} came too late, and only {summary[f'{facts}_too_late']} were sent so")
    return wrong
