"""What a reader does with a chart: clicks a bar or an area, and lets the map play."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from pages import switch_pause
from playwright.sync_api import TimeoutError, expect  # noqa: A004 - as Playwright names it
from running import PATIENCE_MS, eventually

FRIDAY = datetime(2024, 3, 8, 9, tzinfo=UTC)
CLICK_MS = 20_000
"""How long a click may take to be followed before it is taken for lost."""
TRIPS = {("Queens", 0): 7, ("Bronx", 0): 4, ("Queens", 1): 20, ("Queens", 2): 30}


@pytest.fixture
def taxi(browser, dashboard, taxi_stats):
    """The taxi page with TRIPS, by borough and hours after FRIDAY."""
    for (borough, hour), trips in TRIPS.items():
        start = FRIDAY + timedelta(hours=hour)
        window = {"end": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
        sums = dict.fromkeys(("trip_distance_sum", "fare_amount_sum", "tip_amount_sum", "total_amount_sum"), 1.0)
        taxi_stats.write(json.dumps([borough, hour]), json.dumps({"borough": borough, "window": window, "trips": trips, **sums}))
    page = browser.new_page(viewport={"width": 1400, "height": 1500})
    page.goto(f"{dashboard}/taxi")
    expect(total(page)).to_have_text("61", timeout=PATIENCE_MS)
    yield page
    page.close()


def total(page):
    return page.get_by_test_id("stMetric").filter(has_text=re.compile("^Trips")).get_by_test_id("stMetricValue")


def areas(page):
    """The map as a screen reader has it: borough -> trips."""
    labels = page.locator("[aria-roledescription=geoshape]").evaluate_all("shapes => shapes.map(shape => shape.ariaLabel)")
    return {re.search("borough: ([^;]*)", label)[1]: int(re.search("trips: ([0-9]*)", label)[1]) for label in labels}


def click(page, mark, label, until):
    """Clicks a mark of a chart until the page's address is as `until` says.

    A click on a mark that is about to be drawn anew gets lost. A second one before the first was followed would undo it.
    """

    def is_followed():
        found = page.locator(f"[aria-roledescription='{mark}'][aria-label*='{label}']")
        if found.count():
            found.first.click(timeout=PATIENCE_MS)
        try:
            page.wait_for_url(until, timeout=CLICK_MS)
        except TimeoutError:
            return False
        return True

    eventually(is_followed, f"the page to follow a click on {label}")


def test_a_click_on_a_bar_shows_its_hour_and_the_link_shows_the_same(taxi, browser):
    click(taxi, "rect mark", "Queens, 8 Mar 10:00: 20 trips", lambda url: "range=2024-03-08+10%3A00&range=2024-03-08+11%3A00" in url)
    expect(total(taxi)).to_have_text("20", timeout=PATIENCE_MS)
    shared = browser.new_page()
    shared.goto(taxi.url)
    try:
        expect(total(shared)).to_have_text("20", timeout=PATIENCE_MS)
    finally:
        shared.close()


def test_a_click_on_an_area_shows_its_borough_and_a_second_one_shows_all(taxi):
    eventually(lambda: areas(taxi) == {"Manhattan": 0, "Bronx": 4, "Brooklyn": 0, "Queens": 57, "Staten Island": 0}, "the map to be drawn")
    click(taxi, "geoshape", "Queens", lambda url: "borough=Queens" in url)
    expect(total(taxi)).to_have_text("57", timeout=PATIENCE_MS)
    click(taxi, "geoshape", "Queens", lambda url: "borough" not in url)
    expect(total(taxi)).to_have_text("61", timeout=PATIENCE_MS)


def test_the_map_plays_until_the_page_is_paused(taxi, browser):
    taxi.get_by_test_id("stCheckbox").filter(has_text="Play").locator("label").click(timeout=PATIENCE_MS)
    played = []

    def is_whole_round():
        played.append(areas(taxi).get("Queens"))
        return played[-1] == 30 and {7, 20} <= set(played)

    eventually(is_whole_round, "the map to show each hour")
    switch_pause(taxi, on=True)
    hour, since = areas(taxi), taxi.get_by_text("Paused at").inner_text()
    other = browser.new_page()  # the dashboard goes on for others meanwhile
    other.goto(taxi.url.replace("paused=true", "paused=false"))
    try:
        eventually(lambda: areas(other) not in ({}, hour), "the map of another page to play on")
    finally:
        other.close()
    assert (areas(taxi), taxi.get_by_text("Paused at").inner_text()) == (hour, since)
