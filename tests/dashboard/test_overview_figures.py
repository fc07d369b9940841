"""The figures of a domain on the Overview page: events at explicit times in, figures out."""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from contract.domains.nest import DOMAIN
from contract.query_status import waiting_since
from dashboard.health.history import COLUMNS
from dashboard.overview.figures import (
    counting,
    course_of_events,
    events_in,
    rows_out,
    too_late,
    verified,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def history(*batches):
    """(seconds before noon, query, rows out)."""
    points = [
        dict.fromkeys(COLUMNS) | {"at": NOON - timedelta(seconds=ago), "query": query, "sink_rows": out} for ago, query, out in batches
    ]
    return pd.DataFrame(points, columns=list(COLUMNS)).astype({"at": "datetime64[ms, UTC]", "sink_rows": "float64"})


def polls(*ends):
    """(seconds before noon, end of partition a-0, end of a-1 or None while it is not known)."""
    return [(NOON - timedelta(seconds=ago), {"a-0": first} | ({} if second is None else {"a-1": second})) for ago, first, second in ends]


def test_the_rate_of_rows_of_a_query_is_the_mean_of_the_last_minute():
    assert rows_out(history((10, "a", 12), (50, "a", 18), (61, "a", 900), (5, "c", 6)), NOON) == {"a": 0.5, "c": 0.1}


def test_rows_that_came_too_late_are_those_of_the_last_quarter_of_an_hour():
    seen = history((10, "a", 0), (890, "a", 0), (910, "a", 0)).assign(too_late=[1.0, 2.0, 4.0])
    assert too_late(seen, NOON) == {"a": 3}


def test_the_rate_of_events_is_that_of_the_ends_of_the_source_in_the_last_minute():
    assert events_in(polls((90, 0, 0), (50, 1_000, 100), (10, 1_300, 200)), ["a-0", "a-1"], NOON) == 10


def test_a_partition_that_becomes_known_later_is_no_burst_of_events():
    seen = polls((110, 10, None), (100, 20, 5_000), (50, 70, 5_000), (10, 110, 5_000))
    assert events_in(seen, ["a-0", "a-1"], NOON) == 1
    assert max(course_of_events(seen, ["a-0", "a-1"])) <= 1


def test_a_topic_that_is_made_anew_has_no_rate_below_zero():
    seen = polls((100, 9_000, None), (70, 9_100, None), (50, 9_200, None), (10, 0, None), (0, 5, None))
    assert events_in(seen, ["a-0"], NOON) == 0
    assert min(course_of_events(seen, ["a-0"])) == 0


def test_the_course_of_events_has_no_point_for_a_stretch_that_is_not_over():
    steady = [(ago, 10 * (300 - ago), None) for ago in range(299, 8, -10)]
    assert course_of_events(polls(*steady), ["a-0"]) == [10.0] * 8
    assert course_of_events((), ["a-0"]) == []


@pytest.mark.parametrize("found", [(), ((10, 5, 5),), ((90, 0, 0), (70, 5, 5))])
def test_fewer_than_two_polls_in_the_last_minute_are_no_rate(found):
    assert events_in(polls(*found), ["a-0"], NOON) is None


def test_the_queries_of_tables_count_or_all_of_a_domain_without_tables():
    assert counting(DOMAIN, ["nest-archive", "nest-camera-stats", "taxi-archive"]) == ["nest-camera-stats"]
    assert counting(DOMAIN, ["nest-archive", "taxi-archive"]) == ["nest-archive"]


def verdict(query, verdict, minutes, equal=5):
    return {"query": query, "verdict": verdict, "time": NOON - timedelta(minutes=minutes), "rows": {"equal": equal}}


def test_a_domain_is_as_right_as_its_worst_query_and_as_new_as_its_oldest_verification():
    seen = verified(
        DOMAIN, [verdict("nest-archive", "wrong", 1), verdict("nest-camera-stats", "right", 7), verdict("taxi-archive", "right", 9)]
    )
    assert (seen.verdict, seen.verdicts, seen.rows, seen.at) == (
        "wrong",
        {"nest-archive": "wrong", "nest-camera-stats": "right"},
        10,
        NOON - timedelta(minutes=7),
    )
    assert verified(DOMAIN, [verdict("taxi-archive", "right", 9)]) is None


def test_an_event_waits_since_it_was_first_seen_beyond_what_was_read():
    seen = polls((6, 4, 3), (4, 5, 3), (2, 6, 3), (0, 9, 3))
    assert waiting_since({"a-0": 5, "a-1": 3}, seen) == NOON - timedelta(seconds=2)
    assert waiting_since({"a-0": 9, "a-1": 3}, seen) is None
    assert waiting_since({"a-0": 9, "a-1": 2}, seen) == NOON - timedelta(seconds=6)
