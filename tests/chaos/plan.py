"""What happens in a round of chaos, and what must hold after it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_PAUSE_SECONDS = 8

FACTS = {
    "nest": ("nest-camera-stats", "people_seen"),
    "taxi": ("taxi-borough-stats", "trips"),
    "wikimedia": ("wikimedia-edit-stats", "edits"),
}
"""By domain, the query that counts its facts, and what its producer calls them."""


@dataclass(frozen=True)
class Fault:
    """Something bad that happens at `at_second` of the round; `seconds` is how long it lasts, 0 for an event."""

    at_second: float
    what: str
    seconds: float = 0


KILL_PYTHON, KILL_JVM, KILL_KAFKA = "kill -9 of the pipeline", "kill -9 of the pipeline's JVM", "kill -9 of Kafka"
STOP_REGISTRY, FREEZE, PAUSE = "the registry stops", "the pipeline freezes", "the producers pause"
LASTING = (STOP_REGISTRY, FREEZE, PAUSE)


def faults(rng: random.Random, seconds: float) -> list[Fault]:
    """What happens in a round of `seconds`, in order of time: everything once, and one thing more than once."""
    kinds = [KILL_PYTHON, KILL_JVM, KILL_KAFKA, *LASTING]
    kinds.append(rng.choice(kinds))
    return sorted(
        (
            Fault(
                round(rng.uniform(0.1, 0.95) * seconds, 1), what, round(rng.uniform(2, LONGEST_PAUSE_SECONDS), 1) if what in LASTING else 0
            )
            for what in kinds
        ),
        key=lambda fault: fault.at_second,
    )


def disagreements(sent: Mapping[str, Mapping[str, Any]], verified: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is not as it must be, a line each; none: the round is right.

    sent: by domain, the producer's summary. verified: by query, what `streamgauge verify` found. For each domain, all records that were sent must
    be read; each corrupt one must be a dead letter; each fact must be counted once, or all of its records have come too late.
    """
    wrong = [f"{name}: verify says {found['verdict']}" for name, found in verified.items() if found["verdict"] != "right"]
    for domain, (query, facts) in FACTS.items():
        summary, counted = sent[domain], verified[query]
        letters = verified[f"{domain}-dead-letters"]
        expected = {
            "records undelivered": (summary["undelivered"], 0),
            "records read": (counted["records"], summary["events"]),
            "dead letters": (letters["rows"]["equal"], summary["corrupt"]),
            f"{facts} told apart": (counted["lateness"]["events"], summary[facts]),
        }
        wrong += [f"{domain}: {found} {what}, {wanted} sent" for what, (found, wanted) in expected.items() if found != wanted]
        if counted["lateness"]["late_events"] > summary[f"{facts}_too_late"]:
            wrong.append(
                f"{domain}: {counted['lateness']['late_events']} {facts} came too late, and only {summary[f'{facts}_too_late']} were sent so"
            )
    return wrong
