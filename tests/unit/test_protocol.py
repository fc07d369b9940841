"""Whatever the order of the steps, and wherever a process is killed, the table is right in the end: shown for each order that there is."""

import pytest
from protocol import WINDOW, Query, Schedules, explored

TIMES = (3, 12, 4, 27, 8, 13)
"""The fifth and the sixth record are too late, if the fourth is in a batch before theirs."""
MICRO_BATCHES, REAL_TIME = Query(TIMES), Query(TIMES, is_real_time=True)
MISTAKES = {
    "commits before the rows are written": Query(TIMES, commits_early=True),
    "does not keep the watermark of a batch": Query(TIMES, forgets_watermark=True),
    "does not keep the state before a batch": Query(TIMES, takes_newest_state=True),
    "does not catch up in one batch after a start in real-time mode": Query(TIMES, is_real_time=True, catches_up=False),
}


def wrong_at_the_end(query):
    """The states at the end in which the table differs from the recount."""
    return [state for state in explored(query) if query.is_at_end(state) and dict(state.table) != query.recounted(state.offsets)]


@pytest.mark.parametrize("query", [MICRO_BATCHES, REAL_TIME], ids=["micro-batches", "real-time"])
def test_the_table_is_what_verify_recounts_in_each_of_millions_of_schedules(query):
    assert Schedules(query).number > 10_000_000
    assert wrong_at_the_end(query) == []


@pytest.mark.parametrize("query", MISTAKES.values(), ids=MISTAKES)
def test_the_model_finds_a_query_that(query):
    assert wrong_at_the_end(query)


def test_at_any_moment_each_row_is_that_of_the_last_committed_or_of_the_planned_batch():
    for state in explored(MICRO_BATCHES):
        before, after = (MICRO_BATCHES.recounted(batches) for batches in (state.offsets[: state.commits], state.offsets))
        table = dict(state.table)
        for window in {time // WINDOW for time in TIMES}:
            assert table.get(window) in (before.get(window), after.get(window)), state


def test_in_real_time_mode_no_row_is_behind_the_last_checkpoint_nor_counts_a_record_twice():
    for state in explored(REAL_TIME):
        least, table = REAL_TIME.recounted(state.offsets[: state.commits]), dict(state.table)
        for window in {time // WINDOW for time in TIMES}:
            most = sum(time // WINDOW == window for time in TIMES[: state.come])
            assert least.get(window, 0) <= table.get(window, 0) <= most, state
