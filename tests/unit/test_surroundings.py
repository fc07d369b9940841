"""Tests, chaos and benchmarks run on a platform of their own, whatever platform their environment names."""

import os

import pytest
from running import environment, forget_surroundings, settings_on_free_ports

from benchmarks.measuring import own_settings
from infrastructure.settings import Settings

PRODUCTION = {
    "STREAMGAUGE_HOME": "/production",
    "LAKE_URI": "s3a://production/lake",
    "CHECKPOINT_URI": "s3a://production/checkpoints",
    "SPARK_MASTER": "spark://production:7077",
    "KAFKA_BOOTSTRAP_SERVERS": "kafka.production:9092",
    "KAFKA_CLIENT_PROPERTIES": "/production/client.properties",
    "SCHEMA_REGISTRY_URL": "https://registry.production",
    "STREAMGAUGE_NEST_SOURCE": "files:/production/landing",
    "ALERT_WEBHOOK_URL": "https://chat.production/hook",
}


@pytest.fixture(autouse=True)
def production(monkeypatch, tmp_path):
    for variable, text in {**PRODUCTION, "STREAMGAUGE_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(variable, text)


@pytest.mark.parametrize("made", [settings_on_free_ports, own_settings], ids=["tests and chaos", "benchmarks"])
def test_settings_and_programs_have_nothing_of_the_production_that_the_environment_names(made, tmp_path):
    chosen = made(tmp_path / "home")
    seen_by_a_program = Settings.from_environment(environment(chosen))
    assert (seen_by_a_program.lake, seen_by_a_program.checkpoints) == (chosen.home / "lake", chosen.home / "checkpoints")
    ports = {"kafka_port": chosen.kafka_port, "registry_port": chosen.registry_port, "dashboard_port": chosen.dashboard_port}
    own = Settings(
        home=chosen.home, cache=tmp_path / "cache", driver_java_options=chosen.driver_java_options, real_time=chosen.real_time, **ports
    )
    assert seen_by_a_program == own, "only the cache of this machine was to be taken from the environment"


def test_a_process_of_the_tests_forgets_the_production_and_keeps_the_cache_of_this_machine(tmp_path):
    forget_surroundings()
    assert [variable for variable in PRODUCTION if variable in os.environ] == []
    assert Settings.from_environment() == Settings(cache=tmp_path / "cache")
