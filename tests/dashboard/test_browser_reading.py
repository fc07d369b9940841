"""What a reader does with a page: pause it, share a link, take the rows along; in light and dark."""

import csv
import re

import pytest
from pages import switch_pause
from playwright.sync_api import expect
from running import PATIENCE_MS


def test_filters_are_in_the_link_and_hold_for_figures_charts_and_csv(page, browser, camera_stats):
    for zip_code, count in (("94107", 12), ("94110", 5)):
        camera_stats.count(zip_code, count)
    total = page.get_by_test_id("stMetric").filter(has_text="All of these hours").get_by_test_id("stMetricValue")
    expect(total).to_have_text("17", timeout=PATIENCE_MS)
    page.get_by_role("combobox", name=re.compile("Zip codes")).click()
    page.get_by_role("option", name="94110").click()
    page.keyboard.press("Escape")  # closes the list of options, which lies above the page
    expect(total, "a zip code was chosen").to_have_text("5", timeout=PATIENCE_MS)
    expect(page).to_have_url(re.compile(r"[?&]zip=94110"), timeout=PATIENCE_MS)

    page.evaluate("delete window.showSaveFilePicker")  # the browser's own dialog, which no test can answer
    page.get_by_test_id("stDataFrame").hover(timeout=PATIENCE_MS)  # shows the buttons of the table
    with page.expect_download(timeout=PATIENCE_MS) as download:
        page.get_by_role("button", name="Download as CSV").click(timeout=PATIENCE_MS)
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [(row["zip_code"], row["count"]) for row in rows] == [("94110", "5")]

    shared = browser.new_page()
    shared.goto(page.url)
    try:
        expect(shared.get_by_test_id("stMetric").filter(has_text="All of these hours"), "the link shows the same").to_contain_text(
            "5", timeout=PATIENCE_MS
        )
    finally:
        shared.close()


def test_a_paused_page_stands_still_until_it_is_resumed(page, browser, camera_stats):
    camera_stats.count("94107", 12)
    total = page.get_by_test_id("stMetric").filter(has_text="All of these hours").get_by_test_id("stMetricValue")
    expect(total).to_have_text("12", timeout=PATIENCE_MS)
    switch_pause(page, on=True)
    paused = page.get_by_text(re.compile("Paused at"))

    other = browser.new_page()
    other.goto(page.url.partition("?")[0])
    there = other.get_by_test_id("stMetric").filter(has_text="All of these hours").get_by_test_id("stMetricValue")
    try:
        expect(there, "another page has drawn").to_have_text("12", timeout=PATIENCE_MS)
        since = paused.inner_text()  # and by then the paused one has answered a refresh that came before the click
        camera_stats.count("94107", 30)
        expect(there, "another page goes on").to_have_text("30", timeout=PATIENCE_MS)
    finally:
        other.close()
    assert (paused.inner_text(), total.inner_text()) == (since, "12")
    switch_pause(page, on=False)
    expect(total, "it was resumed").to_have_text("30", timeout=PATIENCE_MS)


def test_a_page_that_is_opened_paused_reads_its_tables_first(browser, dashboard):
    page = browser.new_page()
    page.goto(f"{dashboard}/taxi?paused=true")  # no other page has read this topic yet
    try:
        expect(page.get_by_text("No events yet"), "its topic was read").to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text("Paused at"), "then it stands still").to_be_visible(timeout=PATIENCE_MS)
    finally:
        page.close()


@pytest.mark.parametrize(("scheme", "colour"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(16, 22, 29)")])
def test_the_page_follows_the_colour_scheme_of_the_system(page, dashboard, scheme, colour):
    page.emulate_media(color_scheme=scheme)
    page.goto(dashboard)
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", colour, timeout=PATIENCE_MS)
