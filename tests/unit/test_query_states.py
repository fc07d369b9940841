"""Events of queries at explicit times in, the rows of topic query-states out."""

from datetime import UTC, datetime, timedelta

from pipeline.monitoring.failures import Failure
from pipeline.monitoring.query_states import QueryStates

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def measured(late=0, **fields):
    return {"rows_dropped_by_watermark": late, "source_offsets": {"a-0": 1}, **fields}


def stands(states, *names):
    row = states.published("counts", at(99))
    return tuple(row[name] for name in names)


def test_a_run_starts_works_waits_works_and_stops():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    assert stands(states, "state", "since", "started_at", "progress") == (
        "running",
        "2026-11-21T12:00:00.000Z",
        "2026-11-21T12:00:00.000Z",
        None,
    )
    states.progressed("run-1", measured(batch_id=1), at(1))
    assert stands(states, "state", "since") == ("running", "2026-11-21T12:00:00.000Z")
    states.idled("run-1", at(2))
    states.idled("run-1", at(12))
    assert stands(states, "state", "since") == ("idle", "2026-11-21T12:00:02.000Z")
    states.progressed("run-1", measured(batch_id=2), at(20))
    assert stands(states, "state", "since") == ("running", "2026-11-21T12:00:20.000Z")
    states.ended("run-1", None, at(30))
    assert stands(states, "state", "since", "error") == ("stopped", "2026-11-21T12:00:30.000Z", None)
    assert stands(states, "time") == ("2026-11-21T12:01:39.000Z",)


def test_a_run_is_known_to_stand_where_it_goes_on_from_before_its_first_batch():
    states = QueryStates()
    states.resumes_at("counts", {"a-0": 7})
    states.started("run-1", "counts", at(0))
    assert stands(states, "source_offsets", "progress") == ({"a-0": 7}, None)
    assert states.partitions == ["a-0"]
    states.progressed("run-1", measured(source_offsets={"a-0": 9}), at(1))
    assert stands(states, "source_offsets") == ({"a-0": 9},)


def test_what_a_run_has_read_since_its_last_batch_is_where_it_stands_and_it_never_goes_back():
    states = QueryStates()
    states.resumes_at("counts", {"a-0": 7})
    states.started("run-1", "counts", at(0))
    assert states.has_read_to({"counts": {"a-0": 9, "a-1": 0}, "others": {"a-0": 1}}) == ["counts"]
    assert stands(states, "source_offsets") == ({"a-0": 9, "a-1": 0},)
    assert states.has_read_to({"counts": {"a-0": 8, "a-1": 0}}) == []
    assert stands(states, "source_offsets") == ({"a-0": 9, "a-1": 0},)


def test_late_rows_add_up_since_the_start():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    totals = [states.progressed("run-1", measured(late), at(late))["rows_dropped_by_watermark_total"] for late in (3, 0, 4)]
    assert totals == [3, 3, 7]
    states.ended("run-1", None, at(9))
    states.started("run-2", "counts", at(10))
    assert states.progressed("run-2", measured(1), at(11))["rows_dropped_by_watermark_total"] == 1


def test_a_failure_is_remembered_after_a_new_start():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    states.ended("run-1", Failure("boom", "boom\nby a bomb"), at(5))
    assert stands(states, "state", "error", "error_detail", "error_at") == (
        "restarting",
        "boom",
        "boom\nby a bomb",
        "2026-11-21T12:00:05.000Z",
    )
    states.started("run-2", "counts", at(6))
    assert stands(states, "state", "run_id", "error", "error_at") == ("running", "run-2", "boom", "2026-11-21T12:00:05.000Z")


def test_a_query_that_restarts_is_reported_meanwhile_and_stopped_when_its_process_ends():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    states.ended("run-1", Failure("boom", "boom"), at(1))
    states.published("counts", at(1))
    assert not states.are_any_active
    assert states.not_published_for(5, at(6)) == ["counts"]
    assert states.stopped(at(7)) == ["counts"]
    assert stands(states, "state", "since", "error") == ("stopped", "2026-11-21T12:00:07.000Z", "boom")
    assert states.not_published_for(5, at(99)) == []


def test_a_query_that_is_to_be_started_is_reported_meanwhile_as_one_that_restarts_without_an_error():
    states = QueryStates()
    states.waiting("counts", at(0))
    assert stands(states, "state", "error", "progress") == ("restarting", None, None)
    assert states.not_published_for(5, at(105)) == ["counts"]
    states.started("run-1", "counts", at(106))
    assert stands(states, "state", "started_at") == ("running", "2026-11-21T12:01:46.000Z")


def test_a_query_that_waits_for_a_person_restarts_with_that_error():
    states = QueryStates()
    states.waiting("counts", at(0), Failure("topic counts takes too little", ""))
    assert stands(states, "state", "error") == ("restarting", "topic counts takes too little")


def test_a_query_that_restarts_with_a_new_schema_has_no_error_whatever_is_told_first():
    for is_told_first in (True, False):
        states = QueryStates()
        states.started("run-1", "counts", at(0))
        told = [lambda: states.ended("run-1", Failure("unknown id", "unknown id"), at(1)), lambda: states.waiting("counts", at(1))]  # noqa: B023
        for tell in told if is_told_first else reversed(told):
            tell()
        assert stands(states, "state", "error") == ("restarting", None)
        states.started("run-2", "counts", at(2))
        assert stands(states, "state", "error") == ("running", None)


def test_a_query_that_has_caught_up_starts_again_and_is_not_stopped():
    states = QueryStates()
    states.resumes_at("counts", {"a-0": 7}, catches_up=True)
    states.started("run-1", "counts", at(0))
    states.ended("run-1", None, at(1))
    assert stands(states, "state", "error") == ("restarting", None)
    states.resumes_at("counts", {"a-0": 9})
    states.started("run-2", "counts", at(2))
    states.ended("run-2", None, at(3))
    assert stands(states, "state", "error") == ("stopped", None)


def test_a_query_that_is_given_up_stays_so_when_its_process_ends():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    states.ended("run-1", Failure("boom", "boom"), at(1))
    states.given_up("counts", Failure("failed 4 times", "boom"), at(1))
    assert states.stopped(at(2)) == []
    assert stands(states, "state", "error") == ("failed", "failed 4 times")


def test_the_end_of_a_run_that_is_told_after_the_next_start_ends_nothing():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    states.started("run-2", "counts", at(1))
    states.progressed("run-1", measured(5), at(2))
    states.ended("run-1", Failure("boom", "boom"), at(2))
    assert stands(states, "state", "run_id", "error", "progress") == ("running", "run-2", "boom", None)


def test_the_end_of_a_run_is_known_also_when_the_query_was_to_start_again_meanwhile():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    states.waiting("counts", at(1))
    states.started("run-2", "counts", at(2))
    states.ended("run-1", Failure("an unknown schema", "..."), at(3))
    assert states.query_of("run-1") == "counts"
    assert stands(states, "state", "run_id") == ("running", "run-2")


def test_queries_that_run_are_due_when_nothing_was_published_of_them():
    states = QueryStates()
    for number, query in enumerate(("counts", "archive", "ended")):
        states.started(f"run-{number}", query, at(0))
    states.ended("run-2", None, at(0))
    assert states.not_published_for(5, at(0)) == ["counts", "archive"], "of which nothing was published at all"
    for query in ("counts", "archive"):
        states.published(query, at(1))
    states.published("counts", at(3))
    assert states.not_published_for(5, at(5)) == []
    assert states.not_published_for(5, at(6)) == ["archive"]


def test_the_partitions_are_those_of_queries_that_run():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    assert states.are_any_active
    assert states.partitions == []
    states.progressed("run-1", measured(), at(1))
    assert states.partitions == ["a-0"]
    states.ended("run-1", None, at(2))
    assert states.partitions == []
    assert not states.are_any_active


def test_a_query_that_is_given_up_has_failed_also_when_it_never_ran():
    states = QueryStates()
    states.given_up("counts", Failure("no such topic", "no such topic"), at(3))
    assert stands(states, "state", "error", "run_id", "progress") == ("failed", "no such topic", None, None)


def test_why_a_query_was_given_up_stands_against_the_end_of_its_run_that_is_told_later():
    states = QueryStates()
    states.started("run-1", "counts", at(0))
    states.given_up("counts", Failure("raise its version", "raise its version"), at(5))
    states.ended("run-1", Failure("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "..."), at(6))
    assert stands(states, "state", "since", "error") == ("failed", "2026-11-21T12:00:05.000Z", "raise its version")
    states.started("run-2", "counts", at(7))
    states.ended("run-2", None, at(8))
    assert stands(states, "state", "error") == ("stopped", "raise its version")


def test_of_runs_that_have_ended_nothing_is_kept():
    states = QueryStates()
    for number in range(100):
        states.started(f"run-{number}", "counts", at(number))
        states.ended(f"run-{number}", Failure("boom", "boom"), at(number))
    states.started("other", "sums", at(100))
    assert len(states._row_of_run) == 3, "the newest run of each query, and the one before it, whose end may still be reported"
