"""What a round of chaos does, and that each kind of wrong is seen after it."""

import copy
import random

import pytest
from chaos.plan import FACTS, KILL_JVM, KILL_KAFKA, KILL_PYTHON, LASTING, disagreements, faults

SENT = {domain: {"events": 103, "corrupt": 1, "undelivered": 0, facts: 90, f"{facts}_too_late": 2} for domain, (_, facts) in FACTS.items()}
VERIFIED = {
    **{query: {"verdict": "right", "records": 103, "lateness": {"events": 90, "late_events": 2}} for query, _ in FACTS.values()},
    **{f"{domain}-dead-letters": {"verdict": "right", "rows": {"equal": 1}} for domain in FACTS},
}


def test_a_round_has_every_blow_in_order_of_time_and_is_the_same_for_the_same_seed():
    planned = faults(random.Random("1/1"), 60)
    assert {fault.what for fault in planned} == {KILL_PYTHON, KILL_JVM, KILL_KAFKA, *LASTING}
    assert [fault.at_second for fault in planned] == sorted(fault.at_second for fault in planned)
    assert all(bool(fault.seconds) == (fault.what in LASTING) for fault in planned)
    assert planned == faults(random.Random("1/1"), 60) != faults(random.Random("1/2"), 60)


def test_counts_that_agree_are_right():
    assert disagreements(SENT, VERIFIED) == []


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        (("nest-camera-stats", "verdict"), "wrong", "nest-camera-stats: verify says wrong"),
        (("nest-camera-stats", "records"), 102, "nest: 102 records read, 103 sent"),
        (("nest-dead-letters", "rows", "equal"), 0, "nest: 0 dead letters, 1 sent"),
        (("nest-camera-stats", "lateness", "events"), 89, "nest: 89 people_seen told apart, 90 sent"),
        (("nest-camera-stats", "lateness", "late_events"), 3, "nest: 3 people_seen came too late, and only 2 were sent so"),
    ],
)
def test_each_disagreement_is_named(place, value, line):
    verified = copy.deepcopy(VERIFIED)
    inner = verified
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    assert disagreements(SENT, verified) == [line]
