"""What a reader does with a page: pauses it, shares a link, takes the rows along, clicks a bar or an area, and lets the map play."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from pages import switch_pause
from playwright.sync_api import TimeoutError, expect  # noqa: A004 - as Playwright names it
from running import PATIENCE_MS, eventually

from contract.domains.taxi import BoroughStats

FRIDAY = datetime(2024, 3, 8, 9, tzinfo=UTC)
CLICK_MS = 20_000
"""How long a click may take to be followed before it is taken for lost."""
TRIPS = {("Queens", 0): 7, ("Bronx", 0): 4, ("Queens", 1): 20, ("Queens", 2): 30}


def test_filters_are_in_the_link_and_hold_for_figures_charts_and_csv(page, other_tab, camera_stats):
    for zip_code, count in (("94107", 12), ("94110", 5)):
        camera_stats.count(zip_code, count)
    total = page.get_by_test_id("stMetric").filter(has_text="All of these hours").get_by_test_id("stMetricValue")
    expect(total).to_have_text("17", timeout=PATIENCE_MS)
    page.get_by_role("combobox", name=re.compile("Zip codes")).click()
    page.get_by_role("option", name="94110").click()
    page.keyboard.press("Escape")  # closes the list of options, which lies above the page
    expect(total, "a zip code was chosen").to_have_text("5", timeout=PATIENCE_MS)
    expect(page).to_have_url(re.compile(r"[?&]zip=94110"), timeout=PATIENCE_MS)

    expect(page.get_by_text("The newest 1 of 1 row."), "the table has changed, too").to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("delete window.showSaveFilePicker")  # the browser's own dialog, which no test can answer
    page.get_by_test_id("stDataFrame").hover(timeout=PATIENCE_MS)  # shows the buttons of the table
    with page.expect_download(timeout=PATIENCE_MS) as download:
        page.get_by_role("button", name="Download as CSV").click(timeout=PATIENCE_MS)
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [(row["zip_code"], row["count"]) for row in rows] == [("94110", "5")]

    other_tab.goto(page.url)
    expect(other_tab.get_by_test_id("stMetric").filter(has_text="All of these hours"), "the link shows the same").to_contain_text(
        "5", timeout=PATIENCE_MS
    )


def test_a_paused_page_stands_still_until_it_is_resumed(page, other_tab, camera_stats):
    camera_stats.count("94107", 12)
    total = page.get_by_test_id("stMetric").filter(has_text="All of these hours").get_by_test_id("stMetricValue")
    expect(total).to_have_text("12", timeout=PATIENCE_MS)
    switch_pause(page, on=True)
    paused = page.get_by_text(re.compile("Paused at"))

    other_tab.goto(page.url.partition("?")[0])
    there = other_tab.get_by_test_id("stMetric").filter(has_text="All of these hours").get_by_test_id("stMetricValue")
    expect(there, "another page has drawn").to_have_text("12", timeout=PATIENCE_MS)
    since = paused.inner_text()  # and by then the paused one has answered a refresh that came before the click
    camera_stats.count("94107", 30)
    expect(there, "another page goes on").to_have_text("30", timeout=PATIENCE_MS)
    assert (paused.inner_text(), total.inner_text()) == (since, "12")
    switch_pause(page, on=False)
    expect(total, "it was resumed").to_have_text("30", timeout=PATIENCE_MS)


def test_a_page_that_is_opened_paused_reads_its_tables_first(tab, dashboard):
    tab.goto(f"{dashboard}/wikimedia?paused=true")  # no other page has read this topic yet
    expect(tab.get_by_text("No events yet"), "its topic was read").to_be_visible(timeout=PATIENCE_MS)
    expect(tab.get_by_text("Paused at"), "then it stands still").to_be_visible(timeout=PATIENCE_MS)


@pytest.fixture
def taxi(tab, dashboard, taxi_stats):
    """The taxi page with TRIPS, by borough and hours after FRIDAY."""
    for (borough, hour), trips in TRIPS.items():
        start = FRIDAY + timedelta(hours=hour)
        window = {"end": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
        sums = dict.fromkeys((name for name in BoroughStats.names() if "_" in name), 1.0)
        taxi_stats.write(json.dumps([borough, hour]), json.dumps({"borough": borough, "window": window, "trips": trips, **sums}))
    tab.set_viewport_size({"width": 1400, "height": 1500})
    tab.goto(f"{dashboard}/taxi")
    expect(total(tab)).to_have_text("61", timeout=PATIENCE_MS)
    return tab


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


def test_a_click_on_a_bar_shows_its_hour_and_the_link_shows_the_same(taxi, other_tab):
    click(taxi, "rect mark", "Queens, 8 Mar 10:00: 20 trips", lambda url: "range=2024-03-08+10%3A00&range=2024-03-08+11%3A00" in url)
    expect(total(taxi)).to_have_text("20", timeout=PATIENCE_MS)
    other_tab.goto(taxi.url)
    expect(total(other_tab)).to_have_text("20", timeout=PATIENCE_MS)


def test_a_click_on_an_area_shows_its_borough_and_a_second_one_shows_all(taxi):
    eventually(lambda: areas(taxi) == {"Manhattan": 0, "Bronx": 4, "Brooklyn": 0, "Queens": 57, "Staten Island": 0}, "the map to be drawn")
    click(taxi, "geoshape", "Queens", lambda url: "borough=Queens" in url)
    expect(total(taxi)).to_have_text("57", timeout=PATIENCE_MS)
    click(taxi, "geoshape", "Queens", lambda url: "borough" not in url)
    expect(total(taxi)).to_have_text("61", timeout=PATIENCE_MS)


def is_whole_round(page, played):
    """Whether the map has shown each of its three hours, as told by the trips in Queens. played: what was seen before."""
    played.append(areas(page).get("Queens"))
    return {7, 20, 30} <= set(played)


def test_the_map_plays_until_the_page_is_paused(taxi, other_tab):
    taxi.get_by_test_id("stCheckbox").filter(has_text="Play").locator("label").click(timeout=PATIENCE_MS)
    played = []
    eventually(lambda: is_whole_round(taxi, played), "the map to show each hour")
    switch_pause(taxi, on=True)
    other_tab.goto(taxi.url.replace("paused=true", "paused=false"))  # the dashboard goes on for others meanwhile
    eventually(lambda: areas(other_tab), "the map of another page")  # a page draws its map after it says that it is paused
    held, played = (areas(taxi), taxi.get_by_text("Paused at").inner_text()), []

    def only_the_other_plays():
        assert (areas(taxi), taxi.get_by_text("Paused at").inner_text()) == held, "the paused page went on"
        return is_whole_round(other_tab, played)

    eventually(only_the_other_plays, "the map of another page to play on")
