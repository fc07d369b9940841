"""What each domain shows on the Overview page: the rows of its table in, its number, its course and its picture out."""

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.domains import nest, taxi, wikimedia
from dashboard.windows import MAX_COURSE
from infrastructure.kafka.follower import Snapshot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def row(start, length, **fields):
    return {"start": start, "end": start + length, **fields}


def seen(hours_ago, count, zip_code="94107"):
    return row(NOON - hours_ago * HOUR, HOUR, zip_code=zip_code, count=count)


def ride(hours_ago, trips, borough="Queens", minutes=0):
    return row(NOON - hours_ago * HOUR + minutes * MINUTE, HOUR, borough=borough, trips=trips, **dict.fromkeys(taxi.SUMS, 1.0))


def edited(minutes_ago, edits, wiki="enwiki"):
    return row(NOON - minutes_ago * MINUTE, MINUTE, wiki=wiki, edits=edits, bytes_added=1, bytes_removed=0)


def glance(page, *rows):
    return page._glance_of(Snapshot("kafka", "topic", is_read=True, rows=rows))


@pytest.mark.parametrize(
    ("page", "rows", "value", "course"),
    [
        (nest, [seen(0, 5), seen(0, 1_000, "10001"), seen(1, 7), seen(3, 9), seen(24, 99)], "1,005", [9, 0, 7]),
        (taxi, [ride(0, 5), ride(0, 6, "Bronx"), ride(1, 7), ride(1, 50, minutes=30), ride(48, 99)], "11", [7]),
        (wikimedia, [edited(0, 5), edited(0, 6, "dewiki"), edited(2, 7), edited(30, 99)], "11", [7, 0]),
    ],
    ids=["nest", "taxi", "wikimedia"],
)
def test_the_number_is_the_newest_windows_and_the_course_those_before_it(page, rows, value, course):
    found = glance(page, *rows)
    assert (found.value, list(found.course)) == (value, course)
    assert "legend': {" not in str({name: part for name, part in found.picture().items() if name != "datasets"})


def test_a_course_is_short_whatever_times_the_rows_have():
    a_moment = timedelta(milliseconds=1)
    found = glance(taxi, row(NOON - HOUR, a_moment, borough="Queens", trips=1), row(NOON, a_moment, borough="Queens", trips=2))
    assert (found.value, len(found.course)) == ("2", MAX_COURSE)


@pytest.mark.parametrize("page", [nest, taxi, wikimedia])
def test_an_empty_table_shows_nothing(page):
    assert glance(page) is None
