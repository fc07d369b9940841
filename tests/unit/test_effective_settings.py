"""`streamgauge settings`: what is in effect, and where it comes from."""

import json
from dataclasses import fields

import pytest
from running import settings_on_free_ports, streamgauge

from infrastructure.settings import Settings

SECRET = "a-secret"


@pytest.fixture
def shown(tmp_path):
    def run(**variables):
        done = streamgauge("settings", "--format", "json", settings=settings_on_free_ports(tmp_path), **variables)
        assert done.returncode == 0, done.stderr
        return {row["variable"]: (row["value"], row["from"]) for row in json.loads(done.stdout)}, done.stderr

    return run


def test_each_setting_has_its_value_and_where_it_comes_from(shown, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("owner = 'me'\nhome = '/elsewhere'\n")
    found, said = shown(STREAMGAUGE_CONFIG=str(file), STREAMGAUGE_WATERMARK="", STREAMGAUGE_TRIGGER_SECONDS="5")
    assert list(found) == [setting.metadata["variable"] for setting in fields(Settings)]
    assert found["STREAMGAUGE_HOME"] == (str(tmp_path), "environment")
    assert found["STREAMGAUGE_TRIGGER_SECONDS"] == ("5.0", "environment")
    assert found["STREAMGAUGE_OWNER"] == ("me", str(file))
    assert found["STREAMGAUGE_WATERMARK"] == (Settings().watermark, "default")
    assert said == ""


def test_secrets_are_not_shown(shown, tmp_path):
    hook, database = f"https://chat.example/{SECRET}", f"postgresql://me:{SECRET}@127.0.0.1/results"
    file = tmp_path / "own.toml"
    file.write_text(f"database_url = '{database}'")
    file.chmod(0o600)
    found, said = shown(STREAMGAUGE_CONFIG=str(file), ALERT_WEBHOOK_URL=hook)
    assert found["ALERT_WEBHOOK_URL"] == ("***", "environment")
    assert found["STREAMGAUGE_DATABASE_URL"] == ("***", str(file))
    assert SECRET not in str(found) + said
