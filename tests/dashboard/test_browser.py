"""The dashboard as a person sees it: the served process, in a real browser, over the real topic."""

import io
import json
import re
from datetime import UTC, datetime, timedelta

import httpx2
import numpy as np
import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from PIL import Image
from playwright.sync_api import expect
from running import PATIENCE_MS, RETRY_SECONDS

from contract.domains import DOMAINS
from infrastructure.storage.data_files import data_file

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
RED = (220, 38, 38)
PAGES = ("Overview", *(domain.title for domain in DOMAINS), "Health")
# Streamlit makes pale what it is about to draw again: a state between two pictures, and not a color of the page.
IN_FULL_COLOR = "[data-testid=stElementContainer] { opacity: 1 !important } * { transition: none !important; animation: none !important }"
# Streamlit names its small charts as a whole, and not the groups of Vega's marks in them.
SKIPPED = {"exclude": [["[data-testid=stMetricChart] svg"], ["[data-testid=stMetric] svg"]]}


def metric(page, label):
    return page.get_by_test_id("stMetric").filter(has_text=re.compile(f"^{label}")).get_by_test_id("stMetricValue")


def test_a_count_appears_changes_and_goes_while_the_page_stays_open(page, camera_stats):
    expect(page.get_by_text("No events yet"), "the page of an empty topic").to_be_visible(timeout=PATIENCE_MS)

    camera_stats.count("94107", 12)
    expect(metric(page, "All of these hours"), "a row was written").to_have_text("12", timeout=PATIENCE_MS)
    expect(page.get_by_text(re.compile("Live · last update"))).to_be_visible()

    camera_stats.count("94110", 5)
    expect(metric(page, "All of these hours"), "a second row was written").to_have_text("17", timeout=PATIENCE_MS)

    camera_stats.count("94107", 30)
    expect(metric(page, "All of these hours"), "a newer value of the first row was written").to_have_text("35", timeout=PATIENCE_MS)

    camera_stats.count("94107", None)
    expect(metric(page, "All of these hours"), "the first row was deleted").to_have_text("5", timeout=PATIENCE_MS)


def test_a_zip_code_is_text_whatever_it_holds(page, camera_stats):
    camera_stats.count(HOSTILE, 41)
    expect(metric(page, "All of these hours"), "a row was written").to_have_text("41", timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert "owned" not in page.title()


def test_edits_appear_as_they_are_counted_and_names_of_wikis_are_never_markup(page, wikimedia_topics, registry):
    def count(who, counts, minute):
        start = NOON + timedelta(minutes=minute)
        row = {"window": {"start": start, "end": start + timedelta(minutes=1)}, "requested_by": who, "counts": counts}
        serialize = AvroSerializer(SchemaRegistryClient({"url": registry.registry_url}), processed_schema)
        wikimedia_topics["wikimedia.processed"].write(f"{who} {minute}", serialize(row, context))

    processed_schema = data_file("schemas/wikimedia.processed-value.avsc").read_text()
    context = SerializationContext("wikimedia.processed", MessageField.VALUE)
    page.get_by_role("link", name="Wikimedia edits").click()
    expect(page.get_by_text("No events yet"), "the page of empty topics").to_be_visible(timeout=PATIENCE_MS)

    count("Bot", 30, 0)
    count("Human", 70, 0)
    count("Bot", 5, 1)
    expect(metric(page, "Newest window, so far"), "the newest window was written").to_have_text("5", timeout=PATIENCE_MS)
    expect(metric(page, "Last whole window"), "the one before was written").to_have_text("100")
    count("Human", 90, 0)
    expect(metric(page, "Made by bots"), "a newer count of the same window was written").to_have_text("25%", timeout=PATIENCE_MS)

    window = {"start": f"{NOON:%Y-%m-%dT%H:%M:%SZ}", "end": f"{NOON + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"}
    name = "<img src=x onerror='document.title=1'>**bold**"
    row = {"wiki": name, "namespace": 0, "window": window, "edits": 3, "bytes_added": 2_000, "bytes_removed": 7}
    wikimedia_topics["wikimedia-wiki-stats"].write("a wiki", json.dumps(row))
    expect(page.get_by_text("2.0 kB added, 7 bytes removed by 3 edits"), "a wiki was written").to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)
    assert page.locator("img[src='x']").count() == 0
    assert page.title() != "1"


def test_it_is_served_on_loopback_only_and_to_its_own_names_only(dashboard, settings):
    served = [one for one in psutil.net_connections("tcp") if one.laddr and one.laddr.port == settings.dashboard_port]
    assert {one.laddr.ip for one in served if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}

    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "c3RyZWFtZ2F1Z2UtdGVzdA==",
    }

    def answer_to(host):
        with httpx2.stream("GET", f"{dashboard}/_stcore/stream", headers={**handshake, "Host": host}, timeout=RETRY_SECONDS) as answer:
            return answer.status_code

    hosts = (f"127.0.0.1:{settings.dashboard_port}", f"localhost:{settings.dashboard_port}", "elsewhere.example")
    assert [answer_to(host) for host in hosts] == [101, 101, 403]


def share_of(shown, colour):
    """How many of a thousand pixels of the page as it is drawn now have about this colour."""
    pixels = np.asarray(Image.open(io.BytesIO(shown.screenshot())).convert("RGB")).astype(int)
    return 1000 * (abs(pixels - colour) < 12).all(axis=2).mean()


def test_a_failure_turns_the_page_red_and_a_new_start_turns_it_back(page, states, until):
    states("counts", "running")
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_text("1 of 1"), "the query was told to run").to_be_visible(timeout=PATIENCE_MS)
    assert share_of(page, RED) < 0.05

    states("counts", "failed", error=f"boom {HOSTILE}", error_detail=f"boom {HOSTILE}\nby a bomb")
    expect(page.get_by_text("1 query does not run,")).to_be_visible(timeout=PATIENCE_MS)
    shown = expect(page.get_by_test_id("stCode").first, "the error is shown as it is")
    shown.to_have_text(f"boom {HOSTILE}", timeout=PATIENCE_MS)
    until(lambda: share_of(page, RED), lambda share: share > 1, "the state of the query was to be drawn in red")

    states("counts", "running")
    expect(page.get_by_text("1 query does not run,")).to_be_hidden(timeout=PATIENCE_MS)
    until(lambda: share_of(page, RED), lambda share: share < 0.05, "the red was to go")


def test_a_dead_letter_is_shown_as_it_came_and_runs_nothing(page, states):
    states("counts", "running")
    states.letter(HOSTILE.encode(), HOSTILE.encode())
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_test_id("stCode").get_by_text(HOSTILE, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download its bytes").click()
    assert download.value.path().read_bytes() == HOSTILE.encode()
    assert "owned" not in page.title()
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize(("scheme", "colour"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(16, 22, 29)")])
def test_pages_follow_the_colour_scheme_of_the_system_and_axe_finds_nothing_serious(page, camera_stats, states, scheme, colour):
    camera_stats.count("94107", 12)
    states("nest-camera-stats", "running")
    page.emulate_media(color_scheme=scheme)
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", colour, timeout=PATIENCE_MS)
    page.add_style_tag(content=IN_FULL_COLOR)
    found = {}
    for title in PAGES:
        page.get_by_role("link", name=title, exact=True).click(timeout=PATIENCE_MS)
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE_MS)
        if title in {"Overview", "Nest cameras", "Health"}:
            expect(page.get_by_test_id("stMetric").last).to_be_visible(timeout=PATIENCE_MS)
        violations = Axe().run(page, context=SKIPPED).response["violations"]
        found[title] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations if one["impact"] in {"serious", "critical"}]
    assert found == {title: [] for title in PAGES}


def test_each_page_has_an_address(tab, dashboard):
    for path, title in zip(("overview", *(domain.name for domain in DOMAINS), "health"), PAGES, strict=True):
        tab.goto(f"{dashboard}/{path}")
        expect(tab.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE_MS)
        expect(tab.get_by_text("Page not found")).to_have_count(0)


def test_a_click_on_the_picture_of_a_domain_opens_its_page(page, camera_stats, states):
    camera_stats.count("94107", 12)
    states("nest-camera-stats", "running")
    page.get_by_role("link", name="Overview", exact=True).click()
    page.get_by_test_id("stVegaLiteChart").click(timeout=PATIENCE_MS)
    expect(page.get_by_role("heading", level=1, name="Nest cameras")).to_be_visible(timeout=PATIENCE_MS)
