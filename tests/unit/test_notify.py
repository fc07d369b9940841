"""Which incidents the rows of result topics tell of, and in which form. tests/kafka/test_notify.py has the command."""

import socket
import threading
from datetime import UTC, datetime, timedelta
from queue import Queue

import orjson
import pytest
from certificates import Authority
from filelock import FileLock
from mail_server import mail_server
from running import RETRY_SECONDS, free_ports, one_line_error, streamgauge

from infrastructure.errors import StreamgaugeError
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings
from infrastructure.web import outbox
from streamgauge.notify.incidents import ALARMS, CROWDS, STATUS, Incident, alarms, cameras, crowds, may_recount
from streamgauge.notify.mail import Login, Mail
from streamgauge.notify.notifier import Notifier, pause_seconds
from streamgauge.notify.sent_alerts import SentAlerts
from streamgauge.notify.template import form_of

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
SILENCE = timedelta(minutes=5)
HOUR = {"start": TEN, "end": TEN.replace(hour=11)}


def camera(alert, **more):
    return {"device_id": "cam-1", "zip_code": "94107", "alert": alert, "incident": TEN, "since": TEN.replace(minute=7), **more}


@pytest.mark.parametrize(("alert", "level"), [("offline", "warning"), ("flapping", "warning"), ("back", "resolved")])
def test_a_camera_that_flaps_is_the_same_incident_until_it_is_back(alert, level):
    (found,) = cameras([camera(alert)], [], TEN, SILENCE)
    assert (found.name, found.level) == ("camera cam-1 2026-01-01T10:00:00.000Z", level)


@pytest.mark.parametrize(
    ("state", "minutes", "level"),
    [("online", 22, "warning"), ("online", 23, "resolved"), ("offline", 60, "warning"), ("online", None, None)],
    ids=["for ten minutes", "for longer", "not", "of unknown length"],
)
def test_a_camera_that_flapped_is_back_when_it_has_been_heard_of_ten_minutes_after_it_came_online(state, minutes, level):
    of_now = camera(None, state=state)  # since 10:07; it may have been silent for the last five minutes
    (found,) = cameras([camera("flapping")], [of_now], None if minutes is None else TEN + timedelta(minutes=minutes), SILENCE)
    assert found.level == level
    assert (found.what == "camera cam-1 in 94107 is back since 2026-01-01T10:07:00.000Z") == (level == "resolved")


def test_a_camera_that_flapped_has_been_back_when_it_has_another_incident():
    later = TEN.replace(hour=11)
    of_now = camera("offline", state="offline", incident=later, since=later)
    assert [one.level for one in cameras([camera("flapping"), of_now], [of_now], later, SILENCE)] == ["resolved", "warning"]


def test_a_crowd_is_over_when_its_hour_is():
    row = {"zip_code": "94107", "window": HOUR, "crowd": 30, "reached_at": TEN}
    levels = [crowds([row], at)[0].level for at in (TEN, HOUR["end"])]
    assert levels == ["warning", "resolved"]
    assert crowds([row], TEN)[0].what == "30 people seen in 94107 from 2026-01-01T10:00:00.000Z to 2026-01-01T11:00:00.000Z"


@pytest.mark.parametrize(("hour", "level"), [(11, "warning"), (12, "resolved")])
def test_an_alarm_is_over_after_an_hour_without_it(hour, level):
    row = {"time": TEN, "level": "warning", "query": "nest-alarms", "what": "smoke", "detail": ""}
    (found,) = alarms({b'{"alarm":"smoke","device_id":"a1","structure_id":"s1"}': row}, TEN.replace(hour=hour))
    assert found.level == level


@pytest.mark.parametrize("part", [b"[" * 1020 + b"]" * 1020, b"null"], ids=["deep", "null"])
def test_an_alert_of_another_program_with_such_a_key_is_no_alarm(part):
    row = {"time": TEN, "level": "warning", "query": "nest-alarms", "what": "smoke", "detail": ""}
    assert alarms({b'{"alarm":' + part + b',"device_id":"a1","structure_id":"s1"}': row}, TEN) == []


def state(watermark, state="running", query=ALARMS):
    return {"query": query, "state": state, "progress": watermark and {"watermark": watermark}}


@pytest.mark.parametrize(
    ("of_now", "found"),
    [
        (state(TEN), {}),
        (state(TEN - timedelta(minutes=1)), {ALARMS: TEN - timedelta(minutes=1)}),
        (state(None), {ALARMS: None}),
        (state(None, "idle"), {}),
        (state(None, "failed"), {}),
        (state(None, query=CROWDS), {}),
    ],
    ids=[
        "as far as before",
        "not as far",
        "it starts",
        "it starts, and nothing is there to recount",
        "it does not run",
        "it runs for the first time",
    ],
)
def test_a_query_may_recount_while_it_is_not_as_far_as_it_was(of_now, found):
    assert may_recount([of_now], {ALARMS: TEN}) == found


def incident(query, level, name="a"):
    return Incident(name, query, level, "")


def test_what_was_told_is_known_to_the_next_process_until_its_row_is_gone(tmp_path):
    def told(*incidents):
        known = SentAlerts(tmp_path / "told")
        known.keep(incidents, {})
        new = known.new("way", incidents)
        for one in new:
            known.add("way", one)
        return [one.level for one in new]

    assert told(incident(STATUS, "resolved")) == [], "it was over when it was first seen"
    assert told(incident(STATUS, "warning")) == ["warning"]
    assert told(incident(STATUS, "warning")) == told(incident(STATUS, "warning")) == told(incident(STATUS, None)) == []
    assert told(incident(STATUS, "resolved")) == ["resolved"]
    assert told(incident(STATUS, "warning"), incident(CROWDS, "warning", "b")) == ["warning", "warning"]
    assert told(incident(STATUS, "warning"), incident(CROWDS, "resolved", "b")) == ["resolved"]
    assert told(incident(CROWDS, None, "b")) == [], "its query recounts"
    assert told(incident(STATUS, "warning")) == ["warning"]


def test_what_one_way_took_is_still_new_to_another(tmp_path):
    one = incident(STATUS, "warning")
    SentAlerts(tmp_path / "told").add("webhook", one)
    assert [SentAlerts(tmp_path / "told").new(way, [one]) for way in ("webhook", "a@there")] == [[], [one]]


def test_how_far_the_queries_were_is_known_to_the_next_process(tmp_path):
    SentAlerts(tmp_path / "told").keep([], {ALARMS: TEN})
    assert SentAlerts(tmp_path / "told").watermarks == {ALARMS: TEN}


@pytest.mark.parametrize(
    "content", [b"[1]", b"\xff\xfe{}", b'{"levels": 5}', b'{"watermarks": {"q": "soon"}}', b'{"watermarks": {"q": "2026-01-01T00:00:00"}}']
)
def test_a_damaged_file_of_what_was_told_is_an_error_that_says_what_to_do(tmp_path, content):
    (tmp_path / "told").write_bytes(content)
    with pytest.raises(StreamgaugeError, match=r"told is damaged: .*; delete it, and alerts on incidents that still last are sent again"):
        SentAlerts(tmp_path / "told")


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


def test_a_template_in_json_may_begin_with_a_byte_order_mark_as_of_windows(tmp_path):
    (tmp_path / "form").write_text(PAGER, encoding="utf-8-sig")
    assert form_of(tmp_path / "form").content_type == "application/json"


def test_a_template_that_is_no_json_is_plain_text(tmp_path):
    (tmp_path / "form").write_text("$level: ${what}!")
    form = form_of(tmp_path / "form")
    assert (form.content_type, form.body({"level": "error", "what": "smöke"})) == ("text/plain; charset=utf-8", "error: smöke!".encode())


@pytest.mark.parametrize("text", ["$whatever", '{"text": "$whatever"}', "5 $"])
def test_a_template_with_another_field_is_refused(tmp_path, text):
    (tmp_path / "form").write_text(text)
    with pytest.raises(StreamgaugeError, match=r"has a field that an alert lacks: .*; expected \$time, \$level, .*"):
        form_of(tmp_path / "form")


@pytest.mark.parametrize("text", ['{"text": "$text",}', ' [{"text": $text}]'])
def test_a_template_that_is_almost_json_is_refused(tmp_path, text):
    (tmp_path / "form").write_text(text)
    with pytest.raises(
        StreamgaugeError, match=r"form begins like JSON and is not JSON: .*; correct it, or begin plain text with another character"
    ):
        form_of(tmp_path / "form")


ALERT = {
    "time": "2026-01-01T10:00:00.000Z",
    "level": "warning",
    "query": "q",
    "what": "smöke\n in the hall",
    "detail": "",
    "incident": "smoke",
}


@pytest.fixture
def at_once(monkeypatch):
    """A mail server is tried again without a pause."""
    monkeypatch.setattr(outbox, "PAUSES_SECONDS", (0, 0, 0))


def sent(address, to="a@there", login=None):
    """Whether the server took the alert, and the lines about it."""
    lines, taken = [], Queue()
    mail = Mail(address, "me@here", to, lines.append, login)
    mail.send(ALERT, taken.put)
    mail.close()
    return taken.get(timeout=RETRY_SECONDS), lines


def test_an_alert_is_a_mail():
    with mail_server() as (address, taken):
        assert sent(address) == (True, [])
    (mail,) = taken
    assert (mail["Subject"], mail["From"], mail["To"]) == ("warning: smöke in the hall", "me@here", "a@there")
    text = ["time: 2026-01-01T10:00:00.000Z", "level: warning", "query: q", "what: smöke", " in the hall", "incident: smoke"]
    assert mail.get_content().splitlines() == text


@pytest.mark.usefixtures("at_once")
def test_a_mail_server_that_asks_to_try_again_is_asked_again():
    with mail_server(later=3) as (address, taken):
        assert sent(address) == (True, [])
    assert len(taken) == 1


@pytest.mark.usefixtures("at_once")
def test_a_mail_that_the_server_took_is_not_sent_again_whatever_it_says_at_the_end():
    with mail_server(bye="421 so be it") as (address, taken):
        assert sent(address) == (True, [])
    assert len(taken) == 1


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("refused", "later", "answer"), [(["a@there"], 0, "550"), ([], 4, "451")], ids=["for ever", "four times"])
def test_a_mail_that_the_server_refuses_is_told(refused, later, answer):
    with mail_server(*refused, later=later) as (address, taken):
        assert sent(address) == (False, [f"an alert did not reach a@there through the mail server {address}: {answer} so be it"])
    assert taken == []


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_mail_server_that_does_not_answer_is_told(host):
    (port,) = free_ports(1)
    is_taken, (line,) = sent(f"{host}:{port}")
    assert not is_taken
    why = line.removeprefix(f"an alert did not reach a@there through the mail server {host}:{port}: ")
    assert why in {"Connection refused", "Cannot assign requested address"}  # the latter on a machine without IPv6


@pytest.fixture
def authority():
    return Authority("a company's")


@pytest.fixture
def certificate(authority, tmp_path):
    return authority.issue("mail", ("127.0.0.1",)).pem(tmp_path / "mail.pem")


@pytest.fixture
def is_trusted(monkeypatch, authority, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.pem(tmp_path / "authority.pem")))


@pytest.mark.usefixtures("is_trusted")
def test_a_mail_server_that_asks_for_a_password_gets_it_through_tls(certificate):
    with mail_server(certificate=certificate, login=("me", "password")) as (address, taken):
        assert sent(address, login=Login("me", "password")) == (True, [])
        is_taken, (line,) = sent(address, login=Login("me", "wrong"))
    assert (len(taken), is_taken, ": 535 " in line) == (1, False, True)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("is_encrypted", "why"),
    [(False, "it offers no encryption, and the password is not sent without"), (True, "its certificate is not trusted: ")],
)
def test_a_password_is_not_sent_to_a_server_that_cannot_prove_who_it_is(certificate, is_encrypted, why):
    login = Login("me", "password")
    with mail_server(certificate=certificate if is_encrypted else None, login=login) as (address, taken):
        is_taken, (line,) = sent(address, login=login)
    assert (taken, is_taken) == ([], False)
    assert why in line


def test_who_sends_a_mail_does_not_wait_for_the_server():
    finished = Queue()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        Mail(f"127.0.0.1:{silent.getsockname()[1]}", "me@here", "a@there", lambda _: None).send(ALERT, finished.put)
        assert finished.empty()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "ALERT_WEBHOOK_URL is not set"),
        (["--template", "form", "--mail-to", "a@there"], "--template is the form of what goes to ALERT_WEBHOOK_URL, which is not set"),
        *(
            (["--mail-to", "a@there", "--mail-server", server], f"--mail-server is {server!r}; expected HOST:PORT")
            for server in ("there", "a..b:25", "::1:25", "there:smtp", "there:70000")
        ),
        *(
            (["--mail-to", to], f"--mail-to is {to!r}; expected one address")
            for to in ("there", "a@there\nBcc: b@there", "a@there, b@there")
        ),
        (["--mail-to", "a@there", "--mail-from", "me\n"], "--mail-from is 'me\\n'; expected one address"),
        (["--mail-to", "a@there", "--mail-user", "me"], "--mail-user and --mail-password-file go together"),
        (
            ["--mail-to", "a@there", "--mail-user", "me", "--mail-password-file", "/none"],
            "--mail-password-file /none cannot be read (No such",
        ),
        (["--mail-to", "a@there", "--mail-user", "me", "--mail-password-file", "/dev/null"], "--mail-password-file /dev/null is empty"),
        (
            ["--mail-to", "a@there", "--mail-user", "mé", "--mail-password-file", __file__],
            "or --mail-user has a character outside ASCII",
        ),
    ],
)
def test_options_that_cannot_work_are_one_line(tmp_path, options, expected):
    assert expected in one_line_error(streamgauge("notify", *options, settings=Settings(home=tmp_path)), 2)


def test_a_second_notify_with_the_same_home_is_refused(tmp_path):
    settings = Settings(home=tmp_path)
    with FileLock(tmp_path / "notify.lock"):
        assert "another notify is running" in one_line_error(streamgauge("notify", "--mail-to", "a@there", settings=settings))


def test_an_alert_that_is_not_taken_waits_twice_as_long_each_time_up_to_ten_minutes():
    assert [pause_seconds(refusals) for refusals in (1, 2, 3, 4, 5, 2000)] == [60, 120, 240, 480, 600, 600]


def test_a_stop_does_not_wait_for_one_address_after_the_other(tmp_path):
    both, closed, stop = threading.Barrier(2, timeout=RETRY_SECONDS), [], StopRequest()

    class Slow:
        def __init__(self, name):
            self.name = name

        def close(self):
            both.wait()
            closed.append(self.name)

    stop.set()
    Notifier(Settings(home=tmp_path), [Slow("a"), Slow("b")], pytest.fail).follow(stop)
    assert sorted(closed) == ["a", "b"]
