"""Which incidents the rows of result topics tell of, and in which form. tests/kafka/test_notify.py has the command."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from mail_server import mail_server
from running import free_ports, one_line_error, streamgauge

from contract.errors import StreamgaugeError
from contract.settings import Settings
from streamgauge.notify.incidents import CROWDS, STATUS, Incident, alarms, cameras, crowds
from streamgauge.notify.mail import Mail
from streamgauge.notify.template import form_of
from streamgauge.notify.told import Told

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR = {"start": TEN, "end": TEN.replace(hour=11)}


def camera(alert, **more):
    return {"device_id": "cam-1", "zip_code": "94107", "alert": alert, "incident": TEN, "since": TEN.replace(minute=7), **more}


@pytest.mark.parametrize(("alert", "level"), [("offline", "warning"), ("flapping", "warning"), ("back", "resolved")])
def test_a_camera_that_flaps_is_the_same_incident_until_it_is_back(alert, level):
    (found,) = cameras([camera(alert)], [], TEN)
    assert (found.name, found.level) == ("camera cam-1 2026-01-01T10:00:00.000Z", level)


@pytest.mark.parametrize(
    ("state", "minutes", "level"),
    [("online", 17, "warning"), ("online", 18, "resolved"), ("offline", 60, "warning"), ("online", None, None)],
    ids=["for ten minutes", "for longer", "not", "of unknown length"],
)
def test_a_camera_that_flapped_is_back_when_it_has_been_online_for_longer_than_ten_minutes(state, minutes, level):
    of_now = camera(None, state=state)
    (found,) = cameras([camera("flapping")], [of_now], None if minutes is None else TEN + timedelta(minutes=minutes))
    assert found.level == level
    assert (found.what == "camera cam-1 in 94107 is back since 2026-01-01T10:07:00.000Z") == (level == "resolved")


def test_a_camera_that_flapped_has_been_back_when_it_has_another_incident():
    later = TEN.replace(hour=11)
    of_now = camera("offline", state="offline", incident=later, since=later)
    assert [one.level for one in cameras([camera("flapping"), of_now], [of_now], later)] == ["resolved", "warning"]


def test_a_crowd_is_over_when_its_hour_is():
    row = {"zip_code": "94107", "window": HOUR, "crowd": 30, "reached_at": TEN}
    levels = [crowds([row], at)[0].level for at in (TEN, HOUR["end"])]
    assert levels == ["warning", "resolved"]
    assert crowds([row], TEN)[0].what == "30 people seen in 94107 in the hour from 2026-01-01T10:00:00.000Z"


@pytest.mark.parametrize(("hour", "level"), [(11, "warning"), (12, "resolved")])
def test_an_alarm_is_over_after_an_hour_without_it(hour, level):
    row = {"time": TEN, "level": "warning", "query": "nest-alarms", "what": "smoke", "detail": ""}
    (found,) = alarms({b'{"alarm":"smoke","device_id":"a1","structure_id":"s1"}': row}, TEN.replace(hour=hour))
    assert found.level == level


def test_what_was_told_is_known_to_the_next_process_until_its_row_is_gone(tmp_path):
    def incident(query, level, name="a"):
        return Incident(name, query, level, "")

    def told(*incidents):
        return [one.level for one in Told(tmp_path / "told").new(incidents)]

    assert told(incident(STATUS, "resolved")) == [], "it was over when it was first seen"
    assert told(incident(STATUS, "warning")) == ["warning"]
    assert told(incident(STATUS, "warning")) == told(incident(STATUS, "warning")) == told(incident(STATUS, None)) == []
    assert told(incident(STATUS, "resolved")) == ["resolved"]
    assert told(incident(STATUS, "warning"), incident(CROWDS, "warning", "b")) == ["warning", "warning"]
    assert told(incident(STATUS, "warning"), incident(CROWDS, "resolved", "b")) == ["resolved"]
    assert told(incident(CROWDS, "warning", "b")) == [], "an hour that is over is over, also for a query that is behind"
    assert told(incident(STATUS, "warning")) == ["warning"]


def test_a_damaged_file_of_what_was_told_is_an_error_that_says_what_to_do(tmp_path):
    (tmp_path / "told").write_text("[1]")
    with pytest.raises(StreamgaugeError, match=r"told is damaged: .*; delete it, and what lasts is told again"):
        Told(tmp_path / "told")


PAGER = """{"routing_key": "k", "event_action": "$action", "dedup_key": "$incident",
    "payload": {"summary": "$text", "source": "streamgauge", "severity": "$severity", "custom_details": [1, "$$"]}}"""


@pytest.mark.parametrize(
    ("level", "action", "severity"), [("warning", "trigger", "warning"), ("error", "trigger", "error"), ("resolved", "resolve", "info")]
)
def test_a_template_in_json_is_filled_with_the_fields_of_the_alert(tmp_path, level, action, severity):
    (tmp_path / "form").write_text(PAGER)
    form = form_of(tmp_path / "form")
    found = orjson.loads(form.body({"level": level, "incident": 'camera "1"', "text": "a\nb"}))
    payload = {"summary": "a\nb", "source": "streamgauge", "severity": severity, "custom_details": [1, "$"]}
    assert found == {"routing_key": "k", "event_action": action, "dedup_key": 'camera "1"', "payload": payload}
    assert form.content_type == "application/json"


def test_a_template_that_is_no_json_is_plain_text(tmp_path):
    (tmp_path / "form").write_text("$level: ${what}!")
    form = form_of(tmp_path / "form")
    assert (form.content_type, form.body({"level": "error", "what": "smöke"})) == ("text/plain; charset=utf-8", "error: smöke!".encode())


@pytest.mark.parametrize("text", ["$whatever", '{"text": "$whatever"}', "5 $"])
def test_a_template_with_another_field_is_refused(tmp_path, text):
    (tmp_path / "form").write_text(text)
    with pytest.raises(StreamgaugeError, match=r"has a field that an alert lacks: .*; expected \$time, \$level, .*"):
        form_of(tmp_path / "form")


ALERT = {
    "time": "2026-01-01T10:00:00.000Z",
    "level": "warning",
    "query": "q",
    "what": "smöke\n in the hall",
    "detail": "",
    "incident": "smoke",
}


def test_an_alert_is_a_mail():
    lines = []
    with mail_server() as (address, taken):
        Mail(address, "me@here", ["a@there", "b@there"], lines.append).send(ALERT)
    (mail,) = taken
    assert (mail["Subject"], mail["From"], mail["To"]) == ("warning: smöke in the hall", "me@here", "a@there, b@there")
    text = ["time: 2026-01-01T10:00:00.000Z", "level: warning", "query: q", "what: smöke", " in the hall", "incident: smoke"]
    assert mail.get_content().splitlines() == text
    assert lines == []


@pytest.mark.parametrize(
    ("refused", "number", "line"),
    [(["a@there"], 1, "did not take an alert for a@there"), (["a@there", "b@there"], 0, "an alert did not reach the mail server")],
    ids=["some", "all"],
)
def test_a_mail_that_the_server_refuses_is_told(refused, number, line):
    lines = []
    with mail_server(*refused) as (address, taken):
        Mail(address, "me@here", ["a@there", "b@there"], lines.append).send(ALERT)
    assert len(taken) == number
    assert line in lines[0]


def test_a_mail_server_that_does_not_answer_is_told():
    (port,), lines = free_ports(1), []
    Mail(f"127.0.0.1:{port}", "me@here", ["a@there"], lines.append).send(ALERT)
    assert len(lines) == 1
    assert lines[0].startswith(f"an alert did not reach the mail server 127.0.0.1:{port}: ")
    assert lines[0].endswith("Connection refused")


def test_without_an_address_it_does_not_start(tmp_path):
    line = one_line_error(streamgauge("notify", settings=Settings(home=tmp_path)), 2)
    assert "ALERT_WEBHOOK_URL is not set" in line
    line = one_line_error(streamgauge("notify", "--mail-to", "a@there", "--mail-server", "there", settings=Settings(home=tmp_path)), 2)
    assert "--mail-server is 'there'; expected HOST:PORT" in line
