"""What the Nest page makes of its rows: rows with explicit hours in, a list out."""

from datetime import UTC, datetime, timedelta

from dashboard import charts, windows
from dashboard.domains import nest
from dashboard.reading.reader import Snapshot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def sightings(*rows):
    """(zip code, hours before noon, count)."""
    starts = [NOON - timedelta(hours=hours) for _, hours, _ in rows]
    return nest.sightings_of(
        Snapshot(
            "kafka",
            "topic",
            rows=tuple(
                {"zip_code": zip_code, "start": start, "end": start + timedelta(hours=1), "count": count}
                for (zip_code, _, count), start in zip(rows, starts, strict=True)
            ),
        )
    )


def over_time(rows):
    return windows.over_time(rows, "zip_code", "count")


def test_the_busiest_zip_codes_are_those_of_the_newest_hour_with_the_hour_before():
    before = (("94107", 1, 50), ("94301", 1, 90), ("94110", 2, 80))
    newest = (("94107", 0, 3), ("94110", 0, 7))
    ranking = nest.busiest(sightings(*newest), sightings(*newest, *before))

    assert ranking.to_dict("records") == [{"name": "94110", "count": 7, "before": 0}, {"name": "94107", "count": 3, "before": 50}]


def test_zip_codes_beyond_the_largest_are_added_up_as_others():
    largest = [(f"9410{place}", 0, 100 - place) for place in range(charts.LARGEST_SERIES)]
    series, names = over_time(sightings(*largest, ("94601", 0, 4), ("94602", 0, 5)))

    assert names == [zip_code for zip_code, _, _ in largest] + [charts.OTHERS]
    assert series.set_index("name")["count"][charts.OTHERS] == 9


def test_without_smaller_zip_codes_there_are_no_others():
    assert over_time(sightings(("94107", 0, 4)))[1] == ["94107"]


def test_bars_stand_on_one_another_and_start_anew_each_hour():
    series, names = over_time(sightings(("94107", 0, 4), ("94110", 0, 3), ("94107", 1, 2)))
    drawn = charts.stacked_windows(series, names=names, count_title="people seen", name_title="zip code")["datasets"]["rows"]

    assert sorted(zip(drawn["name"], drawn["bottom"], drawn["top"], strict=True)) == [("94107", 0, 2), ("94107", 0, 4), ("94110", 4, 7)]
