"""`streamgauge settings`: what is in effect, where it comes from, and what is none."""

import json

import pytest
from running import settings_on_free_ports, streamgauge

from contract.settings import Settings
from streamgauge.operations.doctor import machine

SECRET = "a-secret"


@pytest.fixture
def shown(tmp_path):
    def run(**variables):
        done = streamgauge("settings", "--format", "json", settings=settings_on_free_ports(tmp_path), **variables)
        assert done.returncode == 0, done.stderr
        return {row["variable"]: (row["value"], row["from"]) for row in json.loads(done.stdout)}, done.stderr

    return run


def test_each_setting_has_its_value_and_where_it_comes_from(shown, tmp_path):
    found, said = shown(STREAMGAUGE_WATERMARK="", STREAMGAUGE_TRIGGER_SECONDS="5")
    assert set(found) == set(Settings().environment())
    assert found["STREAMGAUGE_HOME"] == (str(tmp_path), "environment")
    assert found["STREAMGAUGE_TRIGGER_SECONDS"] == ("5.0", "environment")
    assert found["STREAMGAUGE_WATERMARK"] == (Settings().watermark, "default")
    assert said == ""


def test_secrets_are_not_shown(shown):
    hook, database = f"https://chat.example/{SECRET}", f"postgresql://me:{SECRET}@127.0.0.1/results"
    found, said = shown(ALERT_WEBHOOK_URL=hook, STREAMGAUGE_DATABASE_URL=database)
    assert found["ALERT_WEBHOOK_URL"] == ("***", "environment")
    assert SECRET not in str(found) + said


def test_a_variable_that_is_no_setting_is_told_with_the_one_that_may_be_meant(shown, monkeypatch):
    _, said = shown(STREAMGAUGE_KAFKA_PROT="9093")
    assert said == "warning: STREAMGAUGE_KAFKA_PROT is no setting; STREAMGAUGE_KAFKA_PORT may be meant\n"
    assert {finding.level for finding in machine.variables()} == {"ok"}
    monkeypatch.setenv("STREAMGAUGE_KAFKA_PROT", "9093")
    assert [(finding.level, "STREAMGAUGE_KAFKA_PORT" in finding.message) for finding in machine.variables()] == [("warning", True)]
