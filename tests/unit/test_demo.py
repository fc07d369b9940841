"""The demo before it starts anything."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from filelock import FileLock
from foreign_rows import example
from messages import refused
from mock_kafka import MockKafka
from rich.console import Console
from running import eventually, one_line_error, settings_on_free_ports, streamgauge

from contract.domains import DOMAINS
from infrastructure.text import utc_text
from streamgauge.demo.demo import Demo
from streamgauge.demo.live import LiveFigures
from streamgauge.demo.services import FAULTS, children


def test_a_second_demo_of_a_home_is_refused(tmp_path):
    settings = settings_on_free_ports(tmp_path)
    with FileLock(tmp_path / "demo.lock"), refused(str(tmp_path), "already running", "STREAMGAUGE_HOME"):
        Demo(settings, Console(file=io.StringIO()), [], LiveFigures(settings), DOMAINS).run()


def test_only_those_that_use_them_are_given_the_addresses_with_passwords(tmp_path):
    secrets = {"alert_webhook_url": "http://127.0.0.1:9/a-secret", "database_url": "postgresql://me:a-secret@127.0.0.1:9/results"}
    settings = replace(settings_on_free_ports(tmp_path), **secrets)
    started = children(settings, LiveFigures(settings), dashboard=True)
    given = {
        secret: {child.name for child in started if child.environment[secret]}
        for secret in ("ALERT_WEBHOOK_URL", "STREAMGAUGE_DATABASE_URL")
    }
    assert given == {"ALERT_WEBHOOK_URL": {"pipeline", "audit", "notify"}, "STREAMGAUGE_DATABASE_URL": {"pipeline", "audit"}}


def test_a_part_that_writes_only_when_something_happens_is_ready_when_it_runs(tmp_path):
    settings = replace(settings_on_free_ports(tmp_path), alert_webhook_url="http://127.0.0.1:9/a-secret")
    (notify,) = [child for child in children(settings, LiveFigures(settings), dashboard=False) if child.name == "notify"]
    assert not notify.measure()
    notify.start()
    assert notify.measure()
    notify.ask_to_stop()
    eventually(lambda: not notify.measure(), "its end")


def test_the_audit_and_the_dashboard_can_be_left_out(tmp_path):
    settings = settings_on_free_ports(tmp_path)
    names = {"pipeline", "produce-nest", "produce-taxi", "produce-wikimedia"}
    assert {child.name for child in children(settings, LiveFigures(settings), dashboard=True)} == names | {"audit", "dashboard"}
    assert {child.name for child in children(settings, LiveFigures(settings), dashboard=False, audit=False)} == names


def test_the_page_that_breaks_it_is_served_only_if_asked_for(tmp_path):
    settings = settings_on_free_ports(tmp_path)
    names = {child.name for child in children(settings, LiveFigures(settings), dashboard=False)}
    assert {child.name for child in children(settings, LiveFigures(settings), dashboard=False, break_page=True)} == names | {"break-page"}


def test_only_one_domain_has_a_producer_which_waits_for_no_row_of_another(tmp_path):
    settings = settings_on_free_ports(tmp_path)
    (taxi,) = [domain for domain in DOMAINS if domain.name == "taxi"]
    chosen = children(settings, LiveFigures(settings), [taxi], dashboard=False, audit=False)
    assert [(child.name, child.starts) for child in chosen] == [("pipeline", "with Kafka"), ("produce-taxi", "after Kafka")]


def test_a_rate_is_that_of_each_producer_and_takes_the_place_of_the_speed_of_trips(tmp_path):
    settings = settings_on_free_ports(tmp_path)
    chosen = {child.name: list(child.command) for child in children(settings, LiveFigures(settings), dashboard=False, rate=7)}
    assert all(chosen[f"produce-{domain.name}"][-2 - len(FAULTS) :][:2] == ["--rate", "7"] for domain in DOMAINS)
    assert "--speed-up" not in chosen["produce-taxi"], "it refuses both"


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--only", "taxis"), "no domain taxis; there are nest, taxi, wikimedia"), (("--open", "--no-dashboard"), "leave out --no-dashboard")],
)
def test_what_the_demo_cannot_do_is_one_line(tmp_path, options, told):
    assert told in one_line_error(streamgauge("demo", *options, settings=settings_on_free_ports(tmp_path)))


def test_everything_runs_when_each_query_of_its_domains_has_begun_in_this_demo_or_was_given_up(tmp_path):
    kafka, said = MockKafka(tmp_path, ["query-states"]), io.StringIO()
    (nest,) = [domain for domain in DOMAINS if domain.name == "nest"]
    demo = Demo(kafka.settings, Console(file=said, width=200), [], LiveFigures(kafka.settings), [nest])

    def after(query, state, age=timedelta()):
        row = example("query-states") | {"query": query, "state": state, "time": utc_text(datetime.now(UTC) - age)}
        kafka.write("query-states", orjson.dumps(row), key=query.encode())
        demo._look([])
        return said.getvalue()

    assert not after("nest-archive", "running", timedelta(days=1)), "of a demo before"
    assert not after("nest-archive", "restarting")
    assert not after("taxi-archive", "restarting")
    assert not after("nest-dead-letters", "idle")
    (line,) = after("nest-archive", "failed").splitlines()
    assert "everything runs, but nest-archive given up; `streamgauge status` says why" in line
    assert len(after("nest-archive", "running").splitlines()) == 1, "it is told once"


def test_a_query_that_waits_for_ever_keeps_nobody_who_started_the_demo(tmp_path, monkeypatch):
    kafka, said = MockKafka(tmp_path, ["query-states"]), io.StringIO()
    demo = Demo(kafka.settings, Console(file=said, width=200), [], LiveFigures(kafka.settings), DOMAINS)
    now = utc_text(datetime.now(UTC) + timedelta(minutes=1))
    row = example("query-states") | {"query": "wikimedia-edit-stats", "state": "restarting", "time": now}
    kafka.write("query-states", orjson.dumps(row), key=b"wikimedia-edit-stats")
    demo._look([])
    assert not said.getvalue()
    monkeypatch.setattr("streamgauge.demo.demo.QUERIES_SECONDS", 0)
    demo._look([])
    assert "everything runs, but wikimedia-edit-stats not begun; `streamgauge status` says why" in said.getvalue()
