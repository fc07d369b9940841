"""What a round of chaos does, and that each kind of wrong is seen after it."""

import random
from dataclasses import replace
from itertools import chain, islice

import pytest
from chaos.plan import FACTS, FAULTS_OF_A_ROUND, LASTING, Kind, Total, disagreements, faults, kinds_of_rounds, not_right, totals

SENT = {domain: {"events": 103, "corrupt": 1, "undelivered": 0, facts: 90, f"{facts}_too_late": 2} for domain, (_, facts) in FACTS.items()}
BEFORE = dict.fromkeys(FACTS, Total(records=1000, letters=10, facts=900, late=20))
NOW = dict.fromkeys(FACTS, Total(records=1103, letters=11, facts=990, late=22))


def test_every_kind_comes_once_before_one_comes_again():
    rounds = list(islice(kinds_of_rounds(random.Random(1), list(Kind)), len(Kind)))
    dealt = list(chain.from_iterable(rounds))
    assert set(dealt[: len(Kind)]) == set(dealt[len(Kind) :]) == set(Kind)
    assert all(len(kinds) == FAULTS_OF_A_ROUND for kinds in rounds)


def test_the_faults_of_a_round_are_in_order_of_time_and_the_same_for_the_same_seed():
    planned = faults(random.Random("1/1"), list(Kind), 60)
    assert {fault.kind for fault in planned} == set(Kind)
    assert [fault.at_second for fault in planned] == sorted(fault.at_second for fault in planned)
    assert all(bool(fault.seconds) == (fault.kind in LASTING) for fault in planned)
    assert planned == faults(random.Random("1/1"), list(Kind), 60) != faults(random.Random("1/2"), list(Kind), 60)


def test_totals_are_those_of_the_recount():
    verified = {
        **{query: {"records": 103, "lateness": {"events": 90, "late_events": 2}} for query, _ in FACTS.values()},
        **{f"{domain}-dead-letters": {"rows": {"equal": 1}} for domain in FACTS},
    }
    assert totals(verified) == dict.fromkeys(FACTS, Total(records=103, letters=1, facts=90, late=2))


def test_a_verdict_that_is_not_right_is_told_with_its_reason():
    verified = {"a": {"verdict": "right"}, "b": {"verdict": "not checked", "problem": "no Kafka"}}
    assert not_right(verified) == ["b: verify says not checked: no Kafka"]


def test_counts_that_agree_are_right():
    assert disagreements(SENT, BEFORE, NOW) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"records": 1102}, "nest: 102 records read, 103 sent"),
        ({"letters": 10}, "nest: 0 dead letters, 1 sent"),
        ({"facts": 989}, "nest: 89 people_seen told apart, 90 sent"),
        ({"late": 23}, "nest: 3 people_seen came too late, and only 2 were sent so"),
    ],
)
def test_each_disagreement_is_named(change, line):
    assert disagreements(SENT, BEFORE, NOW | {"nest": replace(NOW["nest"], **change)}) == [line]


def test_a_producer_that_was_killed_says_nothing():
    sent = {domain: summary for domain, summary in SENT.items() if domain != "nest"}
    assert disagreements(sent, BEFORE, NOW | {"nest": Total()}) == []
