"""The Health page, on a real broker: what runs and what does not, measures over time, alerts, dead letters."""

import dataclasses
import os
import re
from datetime import UTC, datetime, timedelta

import orjson
import pytest
import streamlit as st
from foreign_rows import example
from messages import absent
from pages import drawn
from query_topics import ago
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest

from contract.create_topics import create_topics
from contract.query_status import decode_state
from contract.topics import DEAD_LETTERS
from dashboard import formats
from dashboard.health import dead_letters as health_dead_letters
from dashboard.health import page as health
from dashboard.reading.polls import current_statuses
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follower import Snapshot

MARKUP = "<b>**bold** ![image](http://127.0.0.1/)</b>"


@pytest.fixture
def page_with(until):
    """The page, run again until `shows(page)` holds."""

    def script():
        from dashboard.health import page as health

        health.page()

    page = AppTest.from_function(script, default_timeout=RETRY_SECONDS)

    return lambda shows: until(lambda: drawn(page), shows, "the page should show what was written")


def metrics(page):
    return {metric.label: metric.value for metric in page.metric}


def texts(page):
    shown = [*page.markdown, *page.caption, *page.error, *page.warning, *page.header, *page.text, *page.code]
    return "\n".join(str(element.value) for element in shown)


def queries(page):
    return {row["Query"]: row for row in page.dataframe[0].value.to_dict("records")}


def test_before_the_first_query_it_says_what_to_do(kafka, page_with):  # noqa: ARG001 - empty topics
    page = page_with(lambda page: "streamgauge run" in texts(page))
    assert not page.metric
    assert not page.error


def test_a_query_that_runs_is_shown_with_its_measures_and_nothing_is_red(kafka, page_with):
    kafka.state("counts")
    kafka.state("archive", "idle")
    page = page_with(lambda page: metrics(page).get("Queries running") == "2 of 2")
    assert metrics(page) | {"Largest lag": "5"} == metrics(page)
    assert metrics(page)["Rows in, per second"] == "80"
    assert metrics(page)["Too late"] == "6"
    row = queries(page)["counts"]
    assert (row["State"], row["Rows/s in"], row["Batch, ms"], row["Watermark"][:4]) == ("running", 80.0, 400.0, "10 h")
    assert not page.error
    assert not page.warning


def test_the_state_is_shown_by_operator_with_the_timers_that_wait(kafka, page_with):
    kafka.state("counts", operators=[{"operator": "dedupe", "rows": 1234, "bytes": 2_500_000, "timers": None}])
    kafka.state("cameras", operators=[{"operator": "processor", "rows": 40, "bytes": 9, "timers": 35}])
    kafka.state("archive")
    page = page_with(lambda page: metrics(page).get("Queries running") == "3 of 3")
    assert "State by operator" in [expander.label for expander in page.expander]
    listed = page.expander[0].dataframe[0].value.fillna({"Timers": -1}).to_dict("records")
    assert [tuple(row.values()) for row in listed] == [("cameras", "processor", 40, 9e-6, 35), ("counts", "dedupe", 1234, 2.5, -1)]


def test_a_failed_query_stands_on_top_with_its_error_as_text(kafka, page_with):
    kafka.state("counts")
    kafka.state(MARKUP, "failed", error=f"boom {MARKUP}", error_detail=f"boom {MARKUP}\nby a bomb", error_at=ago(seconds=5))
    page = page_with(lambda page: page.error)
    assert "1 query" in page.error[0].value
    assert [code.value for code in page.code] == [f"boom {MARKUP}", f"boom {MARKUP}\nby a bomb"]
    assert page.text[0].value.startswith(MARKUP)
    assert not any("bold" in element.value for element in [*page.markdown, *page.caption, *page.error, *page.warning])
    assert metrics(page)["Queries running"] == "1 of 2"


def test_a_query_that_restarts_is_shown_with_its_error_and_is_not_called_failed(kafka, page_with):
    kafka.state("counts", "restarting", error="boom", error_detail="boom", error_at=ago(seconds=5))
    page = page_with(lambda page: page.code)
    assert [code.value for code in page.code] == ["boom"]
    assert any("Restarting" in element.value for element in page.markdown)
    assert not page.error


def test_queries_of_a_killed_process_are_called_silent_together(kafka, page_with):
    for query in ("archive", "counts"):
        kafka.state(query, time=ago(hours=5, minutes=30))
    page = page_with(lambda page: page.error and "2 queries" in page.error[0].value)
    assert page.text[0].value == "archive, counts"
    assert "7 on here" in page.text[1].value, "the process"
    assert "5 h " in page.text[1].value, "since when"
    assert {row["State"] for row in queries(page).values()} == {"silent"}


def test_a_query_is_not_called_silent_because_the_page_has_lost_kafka():
    lost_at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    row = example("query-states") | {"state": "running", "time": "2026-11-21T11:59:55Z"}
    lost = Snapshot(
        KafkaCluster("127.0.0.1:1"), "query-states", True, (decode_state(orjson.dumps(row)),), error="gone", failing_since=lost_at
    )
    try:
        (status,) = current_statuses(lost, lost_at + timedelta(hours=1))
        (silent,) = current_statuses(dataclasses.replace(lost, failing_since=None), lost_at + timedelta(hours=1))
    finally:
        st.cache_resource.clear()
    assert (status.state, silent.state) == ("running", "silent")


def test_a_stopped_query_is_a_warning_with_what_to_do(kafka, page_with):
    kafka.state("counts", "stopped")
    page = page_with(lambda page: page.warning)
    assert absent(page.warning[0].value, "1 query", "`streamgauge run`", "`streamgauge ingest`") == []
    assert not page.error


def test_a_query_that_has_ended_after_the_last_record_is_no_warning(fresh, kafka, page_with):  # noqa: ARG001 - an empty nest-logs
    kafka.state("counts", "stopped", source_offsets={"nest-logs-0": 0})
    page = page_with(lambda page: metrics(page).get("Largest lag") == "0")
    assert not page.warning
    assert not page.error


def test_a_query_that_runs_again_is_no_trouble_any_more(kafka, page_with):
    kafka.state("counts", "failed", error="boom", error_detail="boom", error_at=ago(seconds=5))
    page_with(lambda page: page.error)
    kafka.state("counts", error="boom", error_detail="boom", error_at=ago(seconds=5))
    page = page_with(lambda page: not page.error and metrics(page)["Queries running"] == "1 of 1")
    assert "1 query has failed and recovered automatically" in [expander.label for expander in page.expander]
    assert "boom" in [code.value for code in page.code]


def test_the_queries_with_the_largest_lag_are_drawn_and_the_others_on_demand(kafka, page_with):
    for number in range(5):
        query = f"query-{number}"
        kafka.state(query, progress=None, source_offsets={})
        kafka.progress(query)
    kafka.state("query-3", "failed", error="boom", error_detail="boom", error_at=ago(seconds=5))
    kafka.state("query-1")

    def drawn_of(page):
        return [text.value for text in page.text if re.fullmatch(r"query-\d", text.value)]

    page = page_with(lambda page: drawn_of(page) == ["query-3", "query-1", "query-0"])
    page.toggle(key="all").set_value(True).run()
    assert sorted(drawn_of(page)) == [f"query-{number}" for number in range(5)]


def test_micro_batches_are_drawn_and_can_be_narrowed_to_a_query(kafka, page_with):
    kafka.state("counts")
    kafka.progress("counts")
    kafka.progress("archive", event="idle")
    kafka.write("metrics", "x", b"rubbish")
    page = page_with(lambda page: any(select.key == "query" for select in page.multiselect))
    page = page_with(lambda page: page.multiselect(key="query").options == ["archive", "counts"])
    page.multiselect(key="query").set_value(["archive"]).run()
    assert not page.exception


def test_what_was_told_a_while_ago_is_not_drawn_as_of_the_last_minutes(kafka, page_with):
    kafka.state("counts")
    kafka.progress("counts", time=ago(minutes=20))
    kafka.progress("archive")
    page = page_with(lambda page: any(select.key == "query" for select in page.multiselect))
    assert page.multiselect(key="query").options == ["archive"]


def test_alerts_are_listed_newest_first_and_what_is_no_alert_is_left_out(kafka, page_with):
    kafka.state("counts")
    for level, what in (("warning", "started again"), ("error", MARKUP)):
        kafka.write(
            "alerts", "counts", orjson.dumps({"time": ago(minutes=1), "level": level, "query": "counts", "what": what, "detail": "more"})
        )
    kafka.write("alerts", "counts", b"rubbish")
    page = page_with(lambda page: metrics(page).get("Alerts") == "2")
    listed = next(table.value for table in page.dataframe if "level" in table.value)
    assert list(listed["level"]) == ["error", "warning"]
    assert list(listed["what"]) == [MARKUP, "started again"]


def test_of_a_day_the_alerts_are_counted_and_not_what_ends_them(kafka, page_with):
    def alert(level, **time):
        kafka.write("alerts", "counts", orjson.dumps({"time": ago(**time), "level": level, "query": "counts", "what": "lag", "detail": ""}))

    kafka.state("counts")
    for level, hours in (("error", 25), ("warning", 2), ("resolved", 1)):
        alert(level, hours=hours)
    page_with(lambda page: len(page.dataframe) > 1 and len(page.dataframe[1].value) == 3 and metrics(page)["Alerts"] == "1")
    for _ in range(200):
        alert("warning", minutes=1)
    page_with(lambda page: metrics(page).get("Alerts") == "200+")


def listed_letters(page):
    frame = next(frame.value for frame in page.dataframe if "Letter" in frame.value)
    return list(zip(frame["Letter"], frame["Reason"], frame["Source"], strict=True))


def test_dead_letters_are_listed_filtered_and_shown_as_text_or_bytes(kafka, page_with):
    kafka.letter(MARKUP.encode())
    kafka.letter(b"\xff\xfe\x00", reason="not UTF-8")
    kafka.letter(None, reason="empty", topic="nyc-taxi")
    page = page_with(lambda page: any("Letter" in frame.value for frame in page.dataframe) and len(listed_letters(page)) == 3)
    assert listed_letters(page)[0] == (2, "empty", "nyc-taxi-0 @ 12")
    assert "It is empty." in texts(page)

    page.multiselect(key="source").set_value(["nest-logs"]).run()
    assert [letter for letter, _, _ in listed_letters(page)] == [1, 0]
    assert page.code[-1].value == r"b'\xff\xfe\x00'"
    page.multiselect(key="reason").set_value(["not JSON"]).run()
    assert [letter for letter, _, _ in listed_letters(page)] == [0]
    assert page.code[-1].value == MARKUP
    assert not any("bold" in element.value for element in [*page.markdown, *page.caption])


def test_the_list_stands_still_until_newer_letters_are_asked_for(kafka, page_with):
    kafka.letter(b"one")
    page_with(lambda page: any("Letter" in frame.value for frame in page.dataframe))
    kafka.letter(b"two")
    page = page_with(lambda page: page.button(key="health-newer").label == "Show 1 newer one")
    assert [letter for letter, _, _ in listed_letters(page)] == [0]
    page.button(key="health-newer").click().run()
    assert [letter for letter, _, _ in listed_letters(page)] == [1, 0]


def test_filters_of_dead_letters_are_part_of_the_address(kafka, page_with):
    page_with(lambda _: True).query_params["source"] = "nyc-taxi"
    for topic in ("nest-logs", "nyc-taxi"):
        kafka.letter(b"{", topic=topic)
    page_with(lambda page: any("Letter" in frame.value for frame in page.dataframe) and [one for one, _, _ in listed_letters(page)] == [1])


def test_letters_of_writers_whose_clocks_differ_are_newer_once(kafka, page_with):
    kafka.letter(b"one", ahead_seconds=60)
    kafka.letter(b"two")
    page = page_with(lambda page: any("Letter" in frame.value for frame in page.dataframe) and len(listed_letters(page)) == 2)
    assert drawn(page).button(key="health-newer").label == "No newer ones"


def test_letters_of_a_topic_that_was_made_anew_take_the_place_of_those_before(kafka, page_with, settings, until):
    for value in (b"one", b"two"):
        kafka.letter(value)
    page = page_with(lambda page: page.selectbox and len(page.selectbox(key="health-letter").options) == 2)
    page.selectbox(key="health-letter").set_value(0).run()
    assert page.code[-1].value == "one"
    admin, name = settings.kafka.admin(), kafka.names["letters"]
    admin.delete_topics([name])[name].result(RETRY_SECONDS)
    until(lambda: admin.list_topics(timeout=RETRY_SECONDS).topics, lambda topics: name not in topics, f"{name} was to be deleted")
    create_topics(settings.kafka, [dataclasses.replace(DEAD_LETTERS, plain_name=name)])
    kafka.letter(b"three")
    page_with(lambda page: page.code and page.code[-1].value == "three")


def test_letters_of_another_topic_are_not_kept_beside_its_newer_ones():
    def script():
        import streamlit as st

        from dashboard.health.dead_letters import _held
        from infrastructure.kafka.follower import Snapshot

        st.text(" ".join(letter["text"] for letter in _held(Snapshot("kafka", "letters", rows=st.session_state["rows"]))))

    def letters(hour, *texts):
        at = datetime(2026, 11, 21, hour, tzinfo=UTC)
        return tuple({"letter_offset": offset, "at": at, "text": text} for offset, text in enumerate(texts))

    page = AppTest.from_function(script, default_timeout=RETRY_SECONDS)
    for rows, shown in ((letters(10, "one"), "one"), (letters(12, "two", "three"), "three two")):
        page.session_state["rows"] = rows
        assert page.run().text[0].value == shown


def test_a_large_letter_is_shown_in_part(kafka, page_with):
    kafka.letter(b"start" + b"x" * 1_000_000)
    page = page_with(lambda page: page.code)
    assert len(page.code[-1].value) == 256 * 1024
    assert absent(texts(page), "262,144", "1,000,005") == []


def test_topics_that_cannot_be_read_are_not_called_empty(kafka, page_with, monkeypatch):
    monkeypatch.setattr(health, "METRICS_TOPIC", "no-metrics")
    monkeypatch.setattr(health, "ALERTS_TOPIC", "no-alerts")
    monkeypatch.setattr(health_dead_letters, "TOPIC", "no-letters")
    kafka.state("counts")
    page = page_with(lambda page: texts(page).count("Not current") == 3)
    assert absent(texts(page), *(untrue := ("None in the last", "No micro-batch", "Reading them"))) == list(untrue)
    assert {metrics(page)[name] for name in ("Dead letters", "Alerts")} == {"\N{EN DASH}"}


def test_a_kafka_that_does_not_answer_is_named_once(monkeypatch, page_with):
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    page = page_with(lambda page: not absent(texts(page), formats.plain("127.0.0.1:1"), "streamgauge up"))
    assert not page.metric
    st.cache_resource.clear()
