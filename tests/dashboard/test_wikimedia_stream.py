"""What the Wikimedia page says of the stream itself: records with explicit times in, words and numbers out."""

from datetime import UTC, datetime, timedelta

import pytest

from contract.query_status import QueryStatus
from dashboard.domains.wikimedia_stream import lag_of, sources_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Record:
    """A record as Kafka's consumer gives it."""

    def __init__(self, source=None, age=timedelta(0)):
        self.headers = lambda: [("source", source)] if source else None
        self.timestamp = lambda: (1, int((NOON - age).timestamp() * 1000))


def said(state, **fields):
    """The number and its meaning, at noon, of a query in that state for ten seconds."""
    since = NOON - timedelta(seconds=10)
    return lag_of(QueryStatus("wikimedia-edit-stats", state, since, since, since, "here", 7, **fields), NOON)[1:]


def test_each_source_is_named_once():
    assert sources_of([Record(source=word) for word in (b"live", b"simulated", b"live")]) == ["live", "simulated"]


def test_a_record_without_a_source_has_an_empty_one():
    assert sources_of([Record()]) == [""]


def test_a_partition_whose_last_record_is_old_says_nothing_of_where_records_come_from_now():
    assert sources_of([Record(source=b"live"), Record(source=b"recorded", age=timedelta(seconds=61))]) == ["live"]
    assert sources_of([Record(source=b"live"), Record(source=b"recorded", age=timedelta(seconds=60))]) == ["live", "recorded"]


def test_the_lag_comes_with_the_age_of_the_last_batch():
    number, meaning = said("running", lag=1_234, batch_ms=412, batch_at=NOON - timedelta(seconds=5))
    assert (number, meaning) == ("1,234", "last batch 5 s ago")


def test_in_real_time_mode_it_comes_with_the_age_of_the_last_checkpoint():
    assert said("running", lag=7, batch_at=NOON - timedelta(seconds=5)) == ("7", "last checkpoint 5 s ago")


def test_a_query_that_waits_or_has_just_started_has_a_lag_too():
    assert said("idle", lag=0) == ("0", "waits for records")
    assert said("running", lag=7) == ("7", "in its first batch")


@pytest.mark.parametrize("state", ["stopped", "failed", "silent"])
def test_a_query_that_processes_nothing_has_no_number(state):
    assert said(state, lag=5) == ("\N{EN DASH}", f"the query is {state}")


def test_before_the_first_run_there_is_no_number():
    assert lag_of(None, NOON)[1:] == ("\N{EN DASH}", "the query has not run")
