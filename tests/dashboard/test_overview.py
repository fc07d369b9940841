"""The Overview page, on a real broker: each domain with its queries, its verification and its dead letters."""

from dataclasses import replace

import orjson
import pytest
from pages import drawn
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest

from contract.topics import QUERY_STATES
from dashboard.overview import page as overview


@pytest.fixture
def kafka(kafka, monkeypatch):
    """The topics of the Health page's tests, which this page reads too."""
    for name, kind in (("METRICS_TOPIC", "metrics"), ("LETTERS_TOPIC", "letters")):
        monkeypatch.setattr(overview, name, kafka.names[kind])
    for name, topic, kind in (("TOPIC", QUERY_STATES, "states"), ("VERDICTS_TOPIC", overview.VERDICTS_TOPIC, "verdicts")):
        monkeypatch.setattr(overview, name, replace(topic, plain_name=kafka.names[kind]))
    return kafka


@pytest.fixture
def page_with(until):
    """The page, run again until `shows(page)` holds."""

    def script():
        from dashboard.overview import page as overview

        overview.page({}, {})

    page = AppTest.from_function(script, default_timeout=RETRY_SECONDS)
    return lambda shows: until(lambda: drawn(page), shows, "the page should show what was written")


def texts(page):
    return "\n".join(element.value for element in (*page.markdown, *page.header, *page.subheader, *page.caption, *page.error))


def drawings(page):
    """The pipeline of each domain, and of the other queries, in the language of Graphviz."""
    return "\n".join(chart.proto.spec for chart in page.get("graphviz_chart"))


def metrics(page):
    """The values of each domain's figures, in the order of the page."""
    return [(metric.label, metric.value) for metric in page.metric]


def verdict(kafka, query, verdict="right"):
    row = {"query": query, "verdict": verdict, "time": "2026-11-21T12:00:00Z", "rows": {"equal": 313}}
    kafka.write("verdicts", query, orjson.dumps(row))


def test_before_the_first_query_it_says_what_to_do(kafka, page_with):  # noqa: ARG001 - empty topics
    assert not page_with(lambda page: "streamgauge run" in texts(page)).metric


def test_a_domain_shows_what_went_in_and_out_and_what_could_not_be_used(kafka, page_with):
    kafka.state("nest-camera-stats")
    kafka.state("nest-archive", "idle")
    kafka.progress("nest-camera-stats", sink_rows=90, rows_dropped_by_watermark=4)
    kafka.progress("nest-archive", sink_rows=None)
    kafka.letter(b"{", topic="nest-logs")
    kafka.letter(b"{", topic="nyc-taxi")
    page = page_with(lambda page: "4 rows too late, 1 dead letter." in texts(page))
    assert [label for label, _ in metrics(page)] == ["Events in, per second"]
    assert "and 1.5 rows out per second." in texts(page)
    assert r'"archive\nidle"' in drawings(page)
    assert texts(page).count("None of its queries has run yet.") == 2
    assert not page.error


def test_what_verify_found_is_a_badge_with_its_age_and_what_it_proved(kafka, page_with):
    for query in ("nest-camera-stats", "nest-archive", "taxi-archive"):
        kafka.state(query)
    verdict(kafka, "nest-camera-stats")
    page = page_with(lambda page: "Verified" in texts(page))
    assert "1 of 2 queries" in texts(page)
    verdict(kafka, "nest-archive", "wrong")
    page_with(lambda page: "Wrong" in texts(page) and "1 of 2" not in texts(page))
    assert "Not verified yet" in texts(page), "taxi was not"


def test_a_failed_query_is_said_on_top_and_a_query_of_no_domain_has_its_place(kafka, page_with):
    kafka.state("taxi-borough-stats", "failed")
    kafka.state("ingest-**nyc**", "running")
    page = page_with(lambda page: page.error)
    assert "1 query does not run." in page.error[0].value
    assert r'"borough-stats\nfailed"' in drawings(page)
    assert r'"ingest-**nyc**\nrunning"' in drawings(page)
    assert "Other queries" in texts(page)


def test_a_query_that_waits_for_its_turn_is_starting(kafka, page_with):
    kafka.state("nest-camera-stats")
    kafka.state("nest-archive", "restarting", progress=None, source_offsets={})
    page = page_with(lambda page: r'"archive\nstarting"' in drawings(page))
    assert not page.error
