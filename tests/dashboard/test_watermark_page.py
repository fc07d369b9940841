"""docs/watermark.html as a learner uses it: dragged, by keyboard, on a phone. No server runs."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from watermark_cases import PAGE

STORIES = {
    "In time": {},
    "One late event": {"K": "late"},
    "One slow partition": {},
    "Two dead letters": {"K": "dead letter", "L": "dead letter"},
}


@pytest.fixture
def page(tab):
    """The page, opened from its file. An error in its console, and every request to elsewhere, fails the test."""
    complaints = []

    def hear(message):
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    def fail(error):
        complaints.append(str(error))

    def see(request):
        if request.url.partition("#")[0] not in {PAGE.as_uri(), "about:blank"}:
            complaints.append(request.url)

    tab.on("console", hear)
    tab.on("pageerror", fail)
    tab.on("request", see)
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.goto(PAGE.as_uri())
    yield tab
    tab.remove_listener("console", hear)
    tab.remove_listener("pageerror", fail)
    tab.remove_listener("request", see)
    assert not complaints, f"errors, and requests to elsewhere: {complaints}"


def event(page, name):
    return page.get_by_role("button", name=re.compile(f"^Event {name},"))


def tell(page, story):
    page.get_by_role("button", name=story, exact=True).click()


def outcomes(page):
    """The outcome of each event that is not in time, by name, as a screen reader tells it."""
    labels = page.locator("#board .event").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    found = {label[6]: label.rpartition(": ")[2] for label in labels}
    return {name: outcome for name, outcome in found.items() if outcome != "in time"}


@pytest.mark.parametrize("story", STORIES)
def test_a_story_shows_what_it_tells(page, story):
    tell(page, story)
    assert outcomes(page) == STORIES[story]


@pytest.mark.parametrize("story", STORIES)
def test_a_story_has_an_address(page, story):
    tell(page, story)
    address = f"{PAGE.as_uri()}#{story.lower().replace(' ', '-')}"
    assert page.url == address
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_role("button", name=story, exact=True)).to_have_attribute("aria-pressed", "true")
    assert outcomes(page) == STORIES[story]


def test_one_watermark_for_the_stream_drops_what_a_slow_partition_sends(page):
    tell(page, "One slow partition")
    page.get_by_label("Watermark", exact=True).select_option("one")
    assert outcomes(page) == {"F": "too late", "H": "too late", "J": "too late"}
    expect(page.get_by_role("status")).to_contain_text("F, H and J are now too late.")


def test_an_event_that_is_dragged_to_a_later_batch_is_too_late(page):
    tell(page, "One late event")
    start, target = event(page, "K").bounding_box(), event(page, "I").bounding_box()
    page.mouse.move(start["x"] + 12, start["y"] + 12)
    page.mouse.down()
    page.mouse.move(start["x"] + 12, target["y"] + 12, steps=4)
    page.mouse.up()
    assert outcomes(page) == {"K": "too late"}
    expect(page.get_by_role("status")).to_have_text(
        "K is too late and dropped: 11:20 is not after 11:35, the watermark with which batch 4 began. Nothing else changes."
    )


def test_the_end_of_a_drag_tells_what_all_of_it_did(page):
    tell(page, "One late event")
    page.get_by_label("Watermark", exact=True).select_option("one")
    start, ten_minutes = event(page, "D").bounding_box(), event(page, "B").bounding_box()["x"] - event(page, "A").bounding_box()["x"]
    page.mouse.move(start["x"] + 12, start["y"] + 12)
    page.mouse.down()
    page.mouse.move(start["x"] + 12 + 2 * ten_minutes, start["y"] + 12, steps=20)
    page.mouse.up()
    expect(event(page, "D")).to_have_attribute("aria-label", "Event D, 11:40, batch 2, partition 1: in time")
    expect(page.get_by_role("status"), "at 11:30 already, K became too late").to_contain_text("K is now too late.")


def test_the_arrow_keys_move_an_event_in_time_and_between_partitions_and_batches(page):
    tell(page, "One late event")
    event(page, "K").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    expect(event(page, "K")).to_have_attribute("aria-label", "Event K, 11:20, batch 5, partition 0: too late")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(event(page, "K")).to_have_attribute("aria-label", "Event K, 11:40, batch 5, partition 0: late")
    expect(event(page, "K"), "the event keeps the focus").to_be_focused()


def test_the_fields_do_what_dragging_does(page):
    event(page, "A").click()
    page.get_by_label("Time", exact=True).select_option("09:30")
    page.get_by_label("Batch", exact=True).select_option("5")
    assert outcomes(page) == {"A": "too late"}
    page.get_by_label("is no event").check()
    assert outcomes(page) == {"A": "dead letter"}
    page.get_by_role("button", name="Remove").click()
    assert outcomes(page) == {}
    page.get_by_role("button", name="Add an event").click()
    expect(event(page, "A")).to_have_attribute("aria-label", "Event A, 13:00, batch 5, partition 0: in time")


def test_a_longer_delay_keeps_hours_open(page):
    final = page.locator("#windows").get_by_text("final")
    expect(final).to_have_count(2)
    page.get_by_label("Delay").fill("120")
    expect(final).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text(
        "The watermark is 120 minutes behind the newest event. 10:00 to 11:00 is open now. 11:00 to 12:00 is open now. "
        "The last watermark moves from 12:30 to 10:40."
    )


def test_an_event_beyond_the_edge_stays_on_the_board(page):
    start = event(page, "J").bounding_box()
    page.mouse.move(start["x"] + 12, start["y"] + 12)
    page.mouse.down()
    page.mouse.move(1279, 799)
    page.mouse.up()
    expect(event(page, "J")).to_have_attribute("aria-label", re.compile("Event J, 13:55, batch 5, partition 1"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_accessible_and_fits_its_window(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    for story in STORIES:
        tell(page, story)
        event(page, "A").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, story
        found = Axe().run(page).response["violations"]
        assert found == [], [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
