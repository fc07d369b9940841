"""`streamgauge notify` as a process, with a real broker and a real webhook: a person is told of an incident once, and once that it is over.

Only a kill between an alert and the note of it makes the alert come twice.
"""

import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread

import orjson
import pytest
from plain import write_topic
from running import environment, eventually
from web_server import webhook

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS, NEST_CROWDS
from contract.topics import ALERTS, QUERY_STATES
from infrastructure.kafka.result_table import read_to_end
from infrastructure.process.stop_signals import StopRequest
from infrastructure.web.webhook import Webhook
from streamgauge.notify import notifier
from streamgauge.notify.notifier import Notifier


@contextmanager
def notifying(settings, url, *options):
    """The process; killed at the end."""
    told_to = environment(replace(settings, alert_webhook_url=url))
    process = subprocess.Popen([sys.executable, "-m", "streamgauge.cli", "notify", *options], env=told_to)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def write(settings, topic, row, **key):
    write_topic(settings, topic.name, [orjson.dumps(row)], key=orjson.dumps(key, option=orjson.OPT_SORT_KEYS), to=0)


def camera(settings, device_id, alert, since="2026-01-01T10:00:00Z"):
    incident = {"device_id": device_id, "incident": "2026-01-01T10:00:00Z"}
    write(settings, NEST_CAMERA_ALERTS, {**incident, "zip_code": "94107", "alert": alert, "since": since}, **incident)


def alarm(settings, state, hour=10):
    window = {"start": f"2026-01-01T{hour}:00:00Z", "end": f"2026-01-01T{hour + 1}:00:00Z"}
    level = "error" if state == "emergency" else "warning"
    row = {"time": window["start"], "level": level, "query": "nest-alarms", "what": f"smoke: {state}, a1 of s1", "detail": ""}
    write(settings, ALERTS, row, alarm="smoke", device_id="a1", structure_id="s1", state=state, window=window)


def crowd(settings, hour=10):
    window = {"start": f"2026-01-01T{hour}:00:00Z", "end": f"2026-01-01T{hour + 1}:00:00Z"}
    row = {"zip_code": "94107", "window": window, "crowd": 30, "reached_at": f"2026-01-01T{hour}:30:00Z"}
    write(settings, NEST_CROWDS, row, zip_code="94107", window=window)


def watermark(settings, query, watermark):
    """What the query says of itself. watermark: None while it starts."""
    now = "2026-01-01T12:00:00Z"
    zeros = dict.fromkeys(("state_rows", "state_bytes", "rows_dropped_by_watermark_total"), 0)
    rates = dict.fromkeys(("input_rows_per_second", "processed_rows_per_second", "batch_ms"))
    row = {"query": query, "state": "running", "since": now, "time": now, "started_at": now, "process": {"host": "h", "pid": 1}}
    row |= {"error": None, "error_detail": None, "error_at": None, "plan": None}
    row["progress"] = watermark and {"time": now, "watermark": watermark, "source_lag": {}, **zeros, **rates}
    write_topic(settings, QUERY_STATES.name, [orjson.dumps(row)], key=query.encode(), to=0)


def told(taken, number):
    """The texts of the alerts that the webhook got, once there are `number`."""
    eventually(lambda: len(taken) >= number, f"{number} alerts")
    return [one["text"] for one in taken]


def noted(settings, incident, level="warning"):
    """Waits until the next process will know that the incident was told."""
    file = settings.home / "notify.json"
    eventually(
        lambda: file.exists() and orjson.loads(file.read_bytes())["levels"].get("webhook", {}).get(incident) == level,
        f"the note of {incident}",
    )


def test_an_offline_camera_is_told_once_also_after_a_kill_and_once_that_it_is_back(fresh):
    first = "warning: nest-camera-status: camera cam-1 in 94107 is offline since 2026-01-01T10:00:00.000Z"
    back = "resolved: nest-camera-status: camera cam-1 in 94107 is back since 2026-01-01T10:07:00.000Z"
    second = "warning: nest-camera-status: camera cam-2 in 94107 is offline since 2026-01-01T10:00:00.000Z"
    with webhook(200) as (url, taken):
        with notifying(fresh, url):
            camera(fresh, "cam-1", "offline")
            assert told(taken, 1) == [first]
            noted(fresh, "camera cam-1 2026-01-01T10:00:00.000Z")
        camera(fresh, "cam-1", "offline")  # a batch that runs again
        with notifying(fresh, url) as process:
            camera(fresh, "cam-1", "back", since="2026-01-01T10:07:00Z")
            assert told(taken, 2) == [first, back]
            camera(fresh, "cam-2", "offline")
            assert told(taken, 3) == [first, back, second]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        with notifying(fresh, url):
            camera(fresh, "cam-3", "back")  # offline and back while nobody looked
            camera(fresh, "cam-4", "offline")
            assert [one["incident"].split()[1] for one in taken if told(taken, 4)] == ["cam-1", "cam-1", "cam-2", "cam-4"]
    assert read_to_end(fresh.kafka, ALERTS.name).rows() == [], "they are no alerts of queries"


def test_a_camera_that_flapped_is_back_and_the_alert_has_the_form_of_the_template(fresh, tmp_path):
    (tmp_path / "form").write_text('{"event_action": "$action", "dedup_key": "$incident", "text": "$what"}')
    with webhook(200) as (url, taken), notifying(fresh, url, "--template", str(tmp_path / "form")):
        camera(fresh, "cam-1", "flapping")
        state = {"device_id": "cam-1", "zip_code": "94107", "state": "online", "reason": None}
        times = dict.fromkeys(("since", "last_seen"), "2026-01-01T10:07:00Z")
        write(fresh, NEST_CAMERA_STATUS, {**state, **times, "incident": "2026-01-01T10:00:00Z"}, device_id="cam-1")
        watermark(fresh, "nest-camera-status", "2026-01-01T10:08:00Z")
        told(taken, 1)
        watermark(fresh, "nest-camera-status", "2026-01-01T10:28:00Z")
        told(taken, 2)
    incident = "camera cam-1 2026-01-01T10:00:00.000Z"
    assert taken == [
        {
            "event_action": "trigger",
            "dedup_key": incident,
            "text": "camera cam-1 in 94107 goes offline again and again since 2026-01-01T10:00:00.000Z",
        },
        {"event_action": "resolve", "dedup_key": incident, "text": "camera cam-1 in 94107 is back since 2026-01-01T10:07:00.000Z"},
    ]


def test_an_alarm_is_told_when_it_begins_gets_worse_and_is_over(fresh):
    with webhook(503, 200) as (url, taken), notifying(fresh, url):
        watermark(fresh, "nest-alarms", "2026-01-01T09:00:00Z")
        alarm(fresh, "warning")
        assert told(taken, 2)[1] == "warning: nest-alarms: smoke: warning, a1 of s1, in the hour from 2026-01-01T10:00:00.000Z"
        alarm(fresh, "warning", hour=11)
        alarm(fresh, "emergency", hour=11)
        assert told(taken, 3)[2] == "error: nest-alarms: smoke: emergency, a1 of s1, in the hour from 2026-01-01T11:00:00.000Z"
        watermark(fresh, "nest-alarms", "2026-01-01T13:00:00Z")
        assert told(taken, 4)[3].startswith("resolved: nest-alarms: ")


def test_a_crowd_is_told_once_and_once_that_it_is_over_whatever_restarts(fresh):
    with webhook(200) as (url, taken):
        with notifying(fresh, url):
            crowd(fresh)
            watermark(fresh, "nest-crowds", "2026-01-01T10:00:00Z")
            assert told(taken, 1)[0].startswith("warning: nest-crowds: 30 people")
            watermark(fresh, "nest-crowds", "2026-01-01T11:00:00Z")
            assert told(taken, 2)[1].startswith("resolved: nest-crowds: ")
            watermark(fresh, "nest-crowds", None)
            camera(fresh, "cam-1", "offline")
            assert "cam-1" in told(taken, 3)[2]
            noted(fresh, "camera cam-1 2026-01-01T10:00:00.000Z")
        with notifying(fresh, url):
            watermark(fresh, "nest-crowds", "2026-01-01T11:00:00Z")
            crowd(fresh, 11)
            assert "from 2026-01-01T11:00" in told(taken, 4)[3]


def test_a_query_that_recounts_tells_nothing_of_the_past(fresh, capfd):
    recounting = "nest-camera-status", "nest-alarms"
    with webhook(200) as (url, taken):
        with notifying(fresh, url):
            watermark(fresh, "nest-alarms", "2026-01-01T10:00:00Z")
            alarm(fresh, "warning")
            told(taken, 1)
            for query in recounting:
                watermark(fresh, query, "2026-01-01T12:00:00Z")
            assert told(taken, 2)[1].startswith("resolved: nest-alarms: ")
            noted(fresh, "smoke a1 s1", "resolved")
        for query in recounting:
            watermark(fresh, query, "2026-01-01T10:00:00Z")
        alarm(fresh, "warning")
        camera(fresh, "cam-1", "offline")
        crowd(fresh)
        watermark(fresh, "nest-crowds", "2026-01-01T10:00:00Z")
        with notifying(fresh, url):
            assert told(taken, 3)[2].startswith("warning: nest-crowds: ")
            camera(fresh, "cam-1", "back", since="2026-01-01T10:07:00Z")
            camera(fresh, "cam-2", "offline")
            for query in recounting:
                watermark(fresh, query, "2026-01-01T12:00:00Z")
            assert "cam-2" in told(taken, 4)[3]
            alarm(fresh, "emergency", hour=12)
            assert told(taken, 5)[4].startswith("error: nest-alarms: smoke: emergency")
    line = "nest-alarms recounts; alerts on it go on when its watermark is at 2026-01-01T12:00:00.000Z again."
    assert line in " ".join(capfd.readouterr().err.split())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_end_in_the_middle_of_ten_incidents_loses_none(fresh, number):
    cameras, may_answer = {f"cam-{number}" for number in range(10)}, Event()
    for name in cameras:
        camera(fresh, name, "offline")
    with webhook(200, when=may_answer) as (url, taken):
        with notifying(fresh, url) as process:
            told(taken, 1)
            process.send_signal(number)
            assert process.wait(60) == (-number if number == signal.SIGKILL else 0)
        before = len(taken)
        may_answer.set()
        with notifying(fresh, url):
            eventually(lambda: {one["incident"].split()[1] for one in taken[before:]} == cameras, "all of them")


def test_an_alert_that_nobody_took_is_sent_again(fresh, monkeypatch):
    monkeypatch.setattr(notifier, "AGAIN_SECONDS", 0)
    lines, stop = [], StopRequest()
    camera(fresh, "cam-1", "offline")
    with webhook(404, 404, 200) as (url, taken):
        following = Thread(target=Notifier(fresh, [Webhook(url, lines.append)], lines.append).follow, args=[stop])
        following.start()
        noted(fresh, "camera cam-1 2026-01-01T10:00:00.000Z")
        stop.set()
        following.join()
    assert [one["what"][:12] for one in taken] == ["camera cam-1"] * 3
    assert len(lines) == 2
    assert all(line.endswith("HTTP 404") for line in lines)
