"""The verdict beside each table, in a real browser: written as the audit writes it, read by the follower of the served dashboard."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect
from running import PATIENCE_MS

from audit.verdicts.comparison import Difference
from audit.verdicts.verdict import RowCounts, Verdict
from audit.verdicts.verdict_topic import write_verdicts
from contract.topics import VERDICTS
from dashboard import verdicts
from infrastructure.kafka.writing import write_rows

KEY = '{"window":{"end":"2026-11-21T13:00:00Z","start":"2026-11-21T12:00:00Z"},"zip_code":"94107"}'
STATS = ("nest-camera-stats", "topic nest-camera-stats")
STATUS = ("nest-camera-status", "topic nest-camera-status and topic nest-camera-alerts")


@pytest.fixture
def found(settings):
    """Writes a verdict, as of some days ago; the topic is left as empty as it was."""
    queries = set()

    def write(query, sink, *, days=0, **fields):
        queries.add(query)
        time = datetime.now(UTC) - timedelta(days=days)
        write_verdicts(settings, [Verdict(query, sink, **fields)], {query: time})

    yield write
    write_rows(settings.kafka, VERDICTS.name, {query.encode(): None for query in queries})


def right(page, since):
    """The verdicts that are shown, and right since so long."""
    return page.get_by_test_id("stMarkdown").filter(has_text=re.compile(rf"Verified {since} ago$"))


def test_what_is_right_says_of_how_many_rows_that_is_known():
    rows = {"equal": 8, "not_checkable": 0, "ahead": 0}
    assert verdicts._right({"rows": rows}) == "8 rows equal what the source says."
    assert verdicts._right({"rows": {"equal": 1, "not_checkable": 2, "ahead": 3}}) == (
        "1 row equals what the source says. 3 rows count records after the last checkpoint, too. "
        "2 rows are not checkable: Kafka has deleted records of theirs."
    )


def test_a_wrong_table_opens_to_its_wrong_rows_and_stays_open_while_the_page_is_drawn_again(page, camera_stats, found):
    found(*STATS, rows=RowCounts(equal=8), days=3)
    camera_stats.count("94107", 12)
    expect(right(page, "3 d")).to_have_count(1, timeout=PATIENCE_MS)

    wrong = Difference("different", KEY, {"zip_code": "94107", "count": 11}, {"zip_code": "94107", "count": 12})
    foreign = Difference("extra", "<b>**a key**</b>", None, {"count": 1})
    found(*STATS, rows=RowCounts(equal=8, different=1, extra=11), differences=[wrong, foreign], faults=["a record without a key"])
    page.get_by_role("button", name="Wrong: 12 rows").click(timeout=PATIENCE_MS)
    rows = page.get_by_test_id("stTable").get_by_role("row")
    expect(rows.nth(1).get_by_role("cell")).to_have_text([KEY, '{"count":11}', '{"count":12}'])
    expect(rows.nth(2).get_by_role("cell")).to_have_text(["<b>**a key**</b>", "no such row", '{"count":1}'])
    expect(page.get_by_text("a record without a key")).to_be_visible()
    expect(page.get_by_text("The first 2 of 12 wrong rows.")).to_be_visible()

    found(*STATS, rows=RowCounts(equal=8, different=1), differences=[wrong])
    expect(rows, "the page was drawn again").to_have_count(2, timeout=PATIENCE_MS)
    found(*STATS, problem="retention has deleted records that the query needs")
    expect(page.get_by_role("button", name="Could not be verified")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("retention has deleted records that the query needs")).to_be_visible(timeout=PATIENCE_MS)


def test_each_page_has_the_verdicts_on_its_tables(page, camera_stats, camera_topics, found):
    status = '{"device_id":"a","zip_code":"94107","state":"offline","reason":"silent","since":"2026-11-21T12:00:00Z",'
    camera_topics[0].write('{"device_id":"a"}', status + '"last_seen":"2026-11-21T12:00:00Z","first_seen":"2026-11-21T12:00:00Z"}')
    camera_stats.count("94107", 12)
    found(*STATS, days=3)
    found(*STATUS, days=5)
    expect(right(page, "3 d"), "in the head of the page").to_have_count(1, timeout=PATIENCE_MS)
    expect(right(page, "5 d"), "on cameras and their alerts").to_have_count(2, timeout=PATIENCE_MS)

    found("taxi-borough-stats", "topic taxi-borough-stats", days=7)
    page.get_by_role("link", name="NYC green taxi").click(timeout=PATIENCE_MS)
    expect(right(page, "7 d")).to_have_count(1, timeout=PATIENCE_MS)

    found("wikimedia-edit-stats", "topic wikimedia.processed", days=9)
    page.get_by_role("link", name="Wikimedia edits").click(timeout=PATIENCE_MS)
    expect(right(page, "9 d")).to_have_count(1, timeout=PATIENCE_MS)
