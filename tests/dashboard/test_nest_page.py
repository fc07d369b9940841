"""The Nest page in each of its states, through Streamlit's AppTest, over a real topic."""

import dataclasses
import json
import os
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import streamlit as st
from messages import absent
from pages import drawn
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest

from contract.domains.nest import NEST_CAMERA_STATUS
from dashboard import formats, page_head
from dashboard.domains import nest_cameras
from dashboard.reading.reader import follow
from infrastructure.kafka.cluster import KafkaCluster

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE_NOON = NOON - timedelta(hours=1)


def script():
    from dashboard.domains import nest

    nest.page()


class Page:
    """What the page shows, by name."""

    def __init__(self, retry=None):
        self.app, self._retry = AppTest.from_function(script, default_timeout=RETRY_SECONDS), retry

    def look(self):
        drawn(self.app)
        return self

    def until(self, expected, what):
        self._retry(self.look, expected, what)

    def __repr__(self):
        return f"{self.metrics}\n{self.texts}"

    @property
    def metrics(self):
        return {metric.label: metric.value for metric in self.app.metric}

    @property
    def texts(self):
        """Every text that Streamlit reads as Markdown, in the order of the page."""
        shown = [*self.app.title, *self.app.header, *self.app.markdown, *self.app.caption, *self.app.error, *self.app.warning]
        return "\n".join([element.value for element in shown] + [expander.label for expander in self.app.expander])

    def rows(self, *columns):
        """The rows of the table that has these columns, from above; none if there is no such table."""
        frames = [frame.value for frame in self.app.dataframe if set(columns) <= set(frame.value.columns)]
        return list(frames[0][list(columns)].itertuples(index=False, name=None)) if frames else []

    @property
    def table(self):
        """The table "All counts": (zip code, count) from above."""
        frame = self.app.dataframe[-1].value
        return list(zip(frame["zip_code"], frame["count"], strict=True))


@pytest.fixture
def page(topic, until):  # noqa: ARG001 - the page reads that topic
    return Page(until)


@pytest.fixture
def page_without_kafka(monkeypatch, until):
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    yield Page(until)
    st.cache_resource.clear()


def test_an_empty_topic_says_what_it_waits_for_and_how_to_start_it(page):
    page.until(lambda seen: "streamgauge demo" in seen.texts, "the empty state was to appear")

    assert not page.metrics


def test_settings_that_change_take_effect_at_the_next_start(topic, page, monkeypatch):
    topic.count("94107", 7)
    page.until(lambda seen: bool(seen.metrics), "the count was to appear")
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert page.look().metrics


def test_rows_are_added_up_for_the_newest_hour_the_one_before_and_all(topic, page):
    topic.count("94107", 7, start=NOON)
    topic.count("94110", 1_200, start=BEFORE_NOON)
    topic.count("unknown", 3, start=BEFORE_NOON - timedelta(hours=5))
    page.until(lambda seen: len(seen.metrics) == 4 and seen.metrics["All of these hours"] == "1,210", "the totals were to appear")

    assert page.metrics == {"Newest hour, so far": "7", "Hour before": "1,200", "All of these hours": "1,210", "Zip code unknown": "3"}
    assert [metric.delta for metric in page.app.metric][:3] == [
        "21 Nov, 12:00\N{EN DASH}13:00",
        "21 Nov, 11:00\N{EN DASH}12:00",
        "3 hours counted",
    ]
    assert "Live" in page.texts
    assert page.table == [("94107", 7), ("94110", 1_200), ("unknown", 3)]


def test_windows_that_are_no_hours_are_called_windows_and_the_shortest_period_holds_one(topic, page):
    for number in range(2):
        topic.count("94107", 7 + number, start=NOON - timedelta(days=number), length=timedelta(days=1))
    page.until(lambda seen: len(seen.metrics) == 4, "the totals were to appear")
    page.app.segmented_control(key="period").set_value("hour")
    assert page.look().metrics == {"Newest window, so far": "7", "Window before": "8", "All of these windows": "7", "Zip code unknown": "0"}
    assert not page.app.exception


def test_windows_of_seconds_can_be_chosen_one_by_one(topic, page):
    for number in range(3):
        topic.count("94107", 7 + number, start=NOON + timedelta(seconds=20 * number), length=timedelta(seconds=20))
    page.until(lambda seen: seen.metrics.get("All of these windows") == "24", "the totals were to appear")
    hours = page.app.select_slider(key="hour").options
    assert hours == ["all", "2026-11-21 12:00", "2026-11-21 12:00:20", "2026-11-21 12:00:40"]
    page.app.segmented_control(key="period").set_value("range")
    page.look().app.select_slider(key="range").set_value(tuple(hours[2:]))
    assert page.look().metrics["All of these windows"] == "8"


def test_a_newer_value_takes_the_place_of_the_older_one_and_a_null_removes_it(topic, page):
    topic.count("94107", 7)
    topic.count("94110", 5)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "12", "both counts were to appear")
    topic.count("94107", 8)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "13", "the newer count was to appear")
    topic.count("94107", None)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "5", "the deleted count was to go")


def test_filters_narrow_the_table_and_keep_their_choice_while_new_zip_codes_come(topic, page):
    topic.count("94107", 7)
    topic.count("94110", 5)
    topic.count("94107", 2, start=NOON - timedelta(hours=30))
    page.until(lambda seen: seen.metrics.get("All of these hours") == "12", "the counts were to appear")
    assert page.table == [("94107", 7), ("94110", 5)], "24 hours are listed at first"

    page.app.segmented_control(key="period").set_value("all")
    assert page.look().table == [("94107", 7), ("94110", 5), ("94107", 2)]
    assert page.metrics["All of these hours"] == "14", "the totals are of the same rows"
    page.app.multiselect(key="zip").set_value(["94107"])
    assert page.look().table == [("94107", 7), ("94107", 2)]
    page.app.number_input(key="least").set_value(3)
    assert page.look().table == [("94107", 7)]

    topic.count("94002", 9)
    page.until(lambda seen: "94002" in seen.app.multiselect(key="zip").options, "the new zip code was to be offered")
    assert page.table == [("94107", 7)]
    assert page.metrics["All of these hours"] == "7"


def test_an_hour_that_is_the_last_one_of_the_chosen_zip_codes_only_is_not_called_the_newest(topic, page):
    topic.count("94107", 7)
    topic.count("94110", 5, start=BEFORE_NOON)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "12", "both counts were to appear")
    page.app.multiselect(key="zip").set_value(["94110"])
    assert page.look().metrics["Last of these hours"] == "5"


def test_a_topic_that_is_read_while_its_paused_page_is_drawn_is_shown(topic, page, monkeypatch, until):
    topic.count("94107", 7)

    def follow_until_read(*topic_and_decoder):
        follower = follow(*topic_and_decoder)
        first = follower.snapshot
        until(lambda: follower.snapshot.is_read, bool, "the topic was to be read")
        return SimpleNamespace(snapshot=first)

    monkeypatch.setattr(page_head, "follow", follow_until_read)
    page.app.query_params["paused"] = "true"
    assert page.look().metrics["All of these hours"] == "7"


def test_results_that_stopped_coming_are_called_stale_and_stay_in_view(topic, page):
    topic.count("94107", 7, age=timedelta(minutes=4))
    page.until(lambda seen: seen.metrics.get("All of these hours") == "7", "the count was to appear")

    assert absent(page.texts, "Stale", "4 min") == []


def test_a_kafka_that_does_not_answer_is_named_with_what_to_do(page_without_kafka):
    page_without_kafka.until(
        lambda seen: not absent(seen.texts, formats.plain("127.0.0.1:1"), "streamgauge up"), "the lost connection was to be shown"
    )
    assert not page_without_kafka.metrics


def test_values_that_cannot_be_read_are_listed_with_their_reasons_and_the_rest_is_shown(topic, page):
    window = '{"start": "2026-11-21T10:00:00", "end": "2026-11-21T11:00:00"}'
    spoilt = {
        "no json": "JSONDecodeError",
        "{}": "zip_code: Field required",
        '{"zip_code": 94107, "window": {}, "count": 1}': "zip_code: Input should be a valid string",
        f'{{"zip_code": "94107", "window": {window}, "count": 1}}': "expected a time with a time zone",
    }
    for value in spoilt:
        topic.write(value, value)
    topic.count("94107", 7)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "7", "the readable count was to appear")

    assert "4 values of topic" in page.texts
    unreadable = page.app.dataframe[0].value
    reasons = dict(zip(unreadable["key"], unreadable["reason"], strict=True))
    assert [value for value, reason in spoilt.items() if reason not in reasons.get(value, "")] == [], reasons


def test_texts_of_the_topic_are_never_read_as_markup(topic, page):
    markup = "<b>**bold** ![image](http://127.0.0.1/)</b>"
    topic.count(markup, 7)
    topic.write(markup, markup)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "7", "the count was to appear")

    assert page.table == [(markup, 7)]
    assert "bold" not in page.texts


def test_drawing_again_and_more_visitors_start_no_thread_and_no_consumer(topic, page, monkeypatch):
    topic.count("94107", 7)
    page.until(lambda seen: seen.metrics.get("All of these hours") == "7", "the count was to appear")
    page.look()
    threads = set(threading.enumerate())
    made, makers = KafkaCluster.consumer, set()

    def noted(*args):
        makers.add(threading.current_thread())
        return made(*args)

    monkeypatch.setattr(KafkaCluster, "consumer", noted)
    for _ in range(5):
        page.look()
        Page().look()

    followers = {thread for thread in threading.enumerate() if thread.name.startswith("follow ")}
    names = sorted(thread.name for thread in followers)
    assert f"follow {topic.name}" in names
    assert names == sorted(set(names)), "one for each topic of the page"
    assert set(threading.enumerate()) <= threads
    assert makers <= followers, "only what follows a topic may make a consumer, for it reconnects"


def test_a_table_of_cameras_that_cannot_be_read_is_told(topic, page, monkeypatch):
    monkeypatch.setattr(nest_cameras, "NEST_CAMERA_STATUS", dataclasses.replace(NEST_CAMERA_STATUS, plain_name="no-cameras"))
    topic.count("94107", 7)
    page.until(lambda seen: seen.metrics and r"no topic no\-cameras" in seen.texts, "the missing topic was to be named")


def test_the_kinds_of_alerts_are_part_of_the_address(topic, camera_topics, page):
    page.app.query_params["alert"] = "back"
    status, alerts = camera_topics
    since = f"{NOON:%Y-%m-%dT%H:%M:%SZ}"
    for camera, alert in (("cam-0", "offline"), ("cam-1", "back")):
        row = {"device_id": camera, "zip_code": "94107", "since": since, "state": "online", "reason": None, "last_seen": since}
        status.write(camera, json.dumps(row))
        alerts.write(camera, json.dumps({**row, "alert": alert, "incident": since}))
    topic.count("94107", 1)
    page.until(lambda seen: seen.rows("device_id", "alert") == [("cam-1", "back")], "only the alert of that kind was to be listed")


def test_cameras_that_are_offline_and_their_alerts_follow_the_zip_codes(topic, camera_topics, page):
    status, alerts = camera_topics
    for number, (zip_code, state, minutes) in enumerate([("94107", "offline", 90), ("94107", "online", 0), ("94110", "offline", 15)]):
        since = f"{NOON - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        camera = {"device_id": f"cam-{number}", "zip_code": zip_code, "since": since}
        status.write(f"cam-{number}", json.dumps({**camera, "state": state, "reason": "silent", "last_seen": since}))
        if state == "offline":
            alerts.write(f"cam-{number}", json.dumps({**camera, "alert": "offline", "incident": since}))
        topic.count(zip_code, 1)
    page.until(lambda seen: len(seen.rows("lasts")) == 2 and len(seen.rows("alert")) == 2, "two cameras were to be offline")
    assert page.rows("device_id", "lasts", "reason") == [("cam-0", "1 h 30 min", "silent"), ("cam-2", "15 min", "silent")]
    assert "2 of 3 cameras" in page.texts
    assert page.rows("device_id", "alert") == [("cam-2", "offline"), ("cam-0", "offline")]

    page.app.multiselect(key="zip").set_value(["94107"]).run()
    assert page.rows("device_id", "lasts", "reason") == [("cam-0", "1 h 30 min", "silent")]
    assert "1 of 2 cameras" in page.texts
    assert page.rows("device_id", "alert") == [("cam-0", "offline")]
