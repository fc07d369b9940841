"""What the summary counts."""

from types import SimpleNamespace

import orjson

from producers.delivery.events import Event
from producers.delivery.faults import Kind, Record
from producers.delivery.summary import Tally, as_json

HOUR_MS = 3_600_000


def record(kind, *facts):
    return Record(kind, Event(0, 0, b"k", b"v", facts))


def summary_of(*records, keep_ms=None):
    tally = Tally("facts", "what is counted", keep_ms)
    for each in records:
        tally.count(each)
    return numbers(tally.summary(seconds=2.0))


def numbers(summary):
    return SimpleNamespace(**{name: number for name, (number, _) in summary.items()})


def test_events_are_distinct_events_and_duplicates_and_corrupt_ones():
    kinds = [Kind.ON_TIME] * 3 + [Kind.LATE] * 2 + [Kind.TOO_LATE] + [Kind.DUPLICATE] * 4 + [Kind.CORRUPT] * 5
    summary = summary_of(*map(record, kinds))
    assert (summary.events, summary.distinct_events, summary.late, summary.too_late) == (15, 6, 2, 1)
    assert (summary.duplicates, summary.corrupt, summary.events_per_second) == (4, 5, 7.5)


def test_a_fact_counts_once():
    assert summary_of(record(Kind.ON_TIME, ("a", 5)), record(Kind.DUPLICATE, ("a", 5), ("a", 6))).facts == 2


def test_a_fact_is_too_late_only_while_no_record_in_time_states_it():
    both = record(Kind.ON_TIME, ("a", 1)), record(Kind.TOO_LATE, ("a", 1), ("b", 1))
    assert summary_of(*both).facts_too_late == summary_of(*reversed(both)).facts_too_late == 1


def test_an_endless_run_forgets_old_facts_and_still_counts_them():
    tally = Tally("facts", "what is counted", keep_ms=HOUR_MS)
    for hour in range(1000):
        tally.count(record(Kind.TOO_LATE, ("a", hour * HOUR_MS)))
        tally.count(record(Kind.ON_TIME, ("b", hour * HOUR_MS)))
    assert len(tally._recent) <= 4
    summary = tally.summary(1.0)
    assert (numbers(summary).facts, numbers(summary).facts_too_late) == (2000, 1000)
    assert tally.summary(1.0) == summary


def test_a_fact_of_the_far_future_does_not_keep_those_after_it():
    tally = Tally("facts", "what is counted", keep_ms=HOUR_MS)
    tally.count(record(Kind.ON_TIME, ("a", 10**6 * HOUR_MS)))
    for hour in range(1000):
        tally.count(record(Kind.ON_TIME, ("b", hour * HOUR_MS)))
    assert len(tally._recent) <= 2
    assert numbers(tally.summary(1.0)).facts == 1001


def test_json_is_one_line_with_the_name_of_the_facts():
    tally = Tally("people_seen", "distinct sightings")
    tally.count(record(Kind.ON_TIME, ("a", 1)))
    text = as_json(tally.summary(1.0))
    assert "\n" not in text
    assert orjson.loads(text)["people_seen"] == 1
    assert "facts" not in text
