"""What the Nest page makes of its rows: rows with explicit hours in, a list out."""

from datetime import UTC, datetime, timedelta

import pandas as pd

from dashboard import charts, windows
from dashboard.domains import nest
from dashboard.periods import Period
from infrastructure.kafka.follower import Snapshot

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def snapshot(*rows):
    """(zip code, hours before noon, count)."""
    starts = [NOON - timedelta(hours=hours) for _, hours, _ in rows]
    return Snapshot(
        "kafka",
        "topic",
        rows=tuple(
            {"zip_code": zip_code, "start": start, "end": start + timedelta(hours=1), "count": count}
            for (zip_code, _, count), start in zip(rows, starts, strict=True)
        ),
    )


def sightings(*rows):
    return nest.sightings_of(snapshot(*rows))


def over_time(rows):
    return windows.over_time(rows, "zip_code", "count")


def test_the_busiest_zip_codes_are_those_of_the_newest_hour_with_the_hour_before():
    before = (("94107", 1, 50), ("94301", 1, 90), ("94110", 2, 80))
    newest = (("94107", 0, 3), ("94110", 0, 7))
    ranking = nest.busiest(sightings(*newest), sightings(*newest, *before))

    assert ranking.to_dict("records") == [{"name": "94110", "count": 7, "before": 0}, {"name": "94107", "count": 3, "before": 50}]


def test_windows_of_two_lengths_before_the_newest_hour_are_added_up():
    """After a change of their length in the code, a table holds both kinds."""
    half_hour = sightings(("94107", 0.5, 2)).assign(end=pd.Timestamp(NOON))
    ranking = nest.busiest(newest := sightings(("94107", 0, 3)), pd.concat([newest, sightings(("94107", 1, 50)), half_hour]))

    assert ranking.to_dict("records") == [{"name": "94107", "count": 3, "before": 52}]


def test_zip_codes_beyond_the_largest_are_added_up_as_others():
    largest = [(f"9410{place}", 0, 100 - place) for place in range(charts.MAX_SERIES)]
    series, names = over_time(sightings(*largest, ("94601", 0, 4), ("94602", 0, 5)))

    assert names == [zip_code for zip_code, _, _ in largest] + [charts.OTHERS]
    assert series.set_index("name")["count"][charts.OTHERS] == 9


def test_without_smaller_zip_codes_there_are_no_others():
    assert over_time(sightings(("94107", 0, 4)))[1] == ["94107"]


def test_bars_stand_on_one_another_and_start_anew_each_hour():
    series, names = over_time(sightings(("94107", 0, 4), ("94110", 0, 3), ("94107", 1, 2)))
    drawn = charts.stacked_windows(series, names=names, count_title="people seen", name_title="zip code")["datasets"]["rows"]

    assert sorted(zip(drawn["name"], drawn["bottom"], drawn["top"], strict=True)) == [("94107", 0, 2), ("94107", 0, 4), ("94110", 4, 7)]


def test_the_map_shows_zip_codes_and_their_states_in_one_hour_on_the_scale_of_all_hours():
    seen = snapshot(("10025", 1, 7), ("11201", 1, 2), ("02139", 0, 3), ("10025", 0, 1), ("unknown", 0, 90))
    filters = nest.Filters(Period(pd.Timestamp(NOON - timedelta(hours=1)), pd.Timestamp(NOON + timedelta(hours=1))), (), 0)

    def shown(hour):
        spec, elsewhere = nest.map_of(seen, filters, hour)
        of_zip_codes, of_states = (spec["datasets"][name].to_dict("records") for name in ("counts", "states"))
        shades, circles = spec["layer"]
        scales = shades["encoding"]["color"]["scale"]["domain"][1], circles["encoding"]["size"]["scale"]["domain"][1]
        return {row["zip_code"]: row["count"] for row in of_zip_codes}, {row["state"]: row["count"] for row in of_states}, scales, elsewhere

    all_hours = {"10025": 8, "02139": 3, "11201": 2}, {"Massachusetts": 3, "New York": 10}, (10, 8), 90
    assert shown(None) == all_hours
    assert shown(pd.Timestamp(NOON)) == ({"02139": 3, "10025": 1}, {"Massachusetts": 3, "New York": 1}, (9, 7), 90)
    assert shown(pd.Timestamp(NOON - timedelta(hours=1))) == ({"10025": 7, "11201": 2}, {"New York": 9}, (9, 7), 0)
