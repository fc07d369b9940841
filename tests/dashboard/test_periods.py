"""The period of a page and the hour of its map: windows with explicit hours in, what is shown out."""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from pages import drawn
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest

from dashboard import windows
from dashboard.periods import Period, strays_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def hours(*starts):
    """Windows that start so many hours after noon."""
    rows = [{"start": NOON + timedelta(hours=start), "end": NOON + timedelta(hours=start + 1)} for start in starts]
    return windows.frame_of(rows, ("start", "end"))


def shown(page, key="shown"):
    """The windows that the page shows, in hours after noon."""
    return [round((start - NOON).total_seconds() / 3600) for start in page.session_state[key]["start"]]


@pytest.fixture
def page():
    """A page of one table and one map. The table is in its session state."""

    def script():
        from datetime import timedelta

        import pandas as pd
        import streamlit as st

        from dashboard.page_head import refreshing
        from dashboard.periods import choose_hour, choose_period, go_to

        def draw():
            if st.button("click the bar at 13:00"):
                at_one = pd.Timestamp("2026-11-21T13:00Z").value / 1e6
                go_to({"start": at_one, "end": at_one + 3_600_000})
            table = st.session_state["table"]
            period = choose_period(st.columns(1)[0], table, {"2 hours": timedelta(hours=2), "all": None}, "2 hours")
            st.session_state["shown"] = chosen = period.of(table)
            hour = choose_hour(chosen["start"])
            st.session_state["on the map"] = chosen if hour is None else chosen[chosen["start"] == hour]

        refreshing(draw)()

    page = AppTest.from_function(script, default_timeout=RETRY_SECONDS)
    page.session_state["table"] = hours(0, 1, 2, 3)
    return page


def test_a_window_belongs_to_a_period_that_holds_all_of_it():
    period = Period(pd.Timestamp(NOON), pd.Timestamp(NOON + timedelta(hours=2)))
    assert [start.hour for start in period.of(hours(-1, 0, 1, 2))["start"]] == [12, 13]


def test_a_choice_counts_back_from_the_newest_window_and_moves_on_with_it(page):
    assert shown(drawn(page)) == [2, 3]
    page.session_state["table"] = hours(0, 1, 2, 3, 4)
    assert shown(drawn(page)) == [3, 4]
    page.segmented_control(key="period").set_value("all")
    assert shown(drawn(page)) == [0, 1, 2, 3, 4]


def test_all_leaves_out_a_few_windows_of_long_ago_and_says_so(page):
    page.session_state["table"] = hours(-140_000, -139_000, *range(30))
    drawn(page).segmented_control(key="period").set_value("all")
    assert shown(drawn(page)) == [*range(30)]
    assert [one.value for one in page.caption] == ["2 older windows are left out, far before 21 November 2026. Choose *range* to see all."]
    page.segmented_control(key="period").set_value("range")
    assert shown(drawn(page)) == [-140_000, -139_000, *range(30)]
    assert not page.caption


@pytest.mark.parametrize(
    ("starts", "strays"),
    [
        ([], 0),
        ([0], 0),
        ([-1000, 0], 0),  # a half is not few
        ([*range(20)], 0),
        ([-1000, *range(20)], 1),
        ([-1000, -999, *range(20)], 2),
        ([-20, *range(20)], 1),
        ([-19, *range(20)], 0),  # the gap is as long as what comes after it
        ([*range(20), 1000], 0),  # the newest window is never a stray
    ],
)
def test_strays_are_few_and_before_a_gap_longer_than_the_rest(starts, strays):
    assert strays_of(hours(*starts)["start"]) == strays


def test_a_range_of_the_url_stays_while_newer_windows_come(page):
    page.query_params["period"], page.query_params["range"] = "range", ["2026-11-21 13:00", "2026-11-21 15:00"]
    assert shown(drawn(page)) == [1, 2]
    page.session_state["table"] = hours(0, 1, 2, 3, 4)
    assert shown(drawn(page)) == [1, 2]


def test_an_open_end_of_a_range_follows_the_newest_window(page):
    page.query_params["period"], page.query_params["range"] = "range", ["2026-11-21 14:00", "newest"]
    assert shown(drawn(page)) == [2, 3]
    page.session_state["table"] = hours(0, 1, 2, 3, 4)
    assert shown(drawn(page)) == [2, 3, 4]


def test_a_range_that_the_table_does_not_have_shows_all(page):
    page.query_params["period"], page.query_params["range"] = "range", ["1999-01-01 00:00", "<b>"]
    assert shown(drawn(page)) == [0, 1, 2, 3]


def test_a_click_on_a_window_makes_it_the_range_and_puts_it_into_the_url(page):
    drawn(page).button[0].click()
    assert shown(drawn(page)) == [1]
    assert page.query_params["period"] == "range"
    assert page.query_params["range"] == ["2026-11-21 13:00", "2026-11-21 14:00"]


def test_the_map_plays_hour_after_hour_and_begins_again(page):
    drawn(page).segmented_control(key="period").set_value("all").run()
    assert shown(page, "on the map") == [0, 1, 2, 3]
    page.toggle(key="play").set_value(True)
    assert [shown(drawn(page), "on the map") for _ in range(5)] == [[0], [1], [2], [3], [0]]
    page.toggle(key="play").set_value(False)
    assert shown(drawn(page), "on the map") == [0], "it stays where it was stopped"


def test_a_map_that_plays_stands_still_while_the_page_is_paused(page):
    page.query_params["paused"], page.query_params["play"], page.query_params["hour"] = "true", "true", "2026-11-21 15:00"
    assert [shown(drawn(page), "on the map") for _ in range(2)] == [[3], [3]]
