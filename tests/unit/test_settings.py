"""Settings: defaults, reading, and one clear error for what cannot be read."""

from dataclasses import fields
from pathlib import Path

import pytest
from messages import refused

from infrastructure.settings import Settings, kinds
from infrastructure.settings.settings import user_cache

WHOLE_SECONDS = '"1 second"'
OF_PATHS = {
    kinds.PATH: "{}",
    kinds.FOLDER: "{}",
    kinds.FOLDER_OR_OBJECT_STORE: "{}",
    kinds.LANDING_FOLDER: "files:{}",
    kinds.DATABASE: "sqlite:////data/{}",
}
"""The kinds of settings that hold a path, and where."""
PATHS = {of.metadata["variable"]: OF_PATHS[of.metadata["kind"]] for of in fields(Settings) if of.metadata["kind"] in OF_PATHS}


def test_an_empty_variable_means_the_default():
    assert Settings.from_environment({"STREAMGAUGE_KAFKA_PORT": "", "SPARK_MASTER": ""}) == Settings()


def test_reads_each_kind():
    given = {
        "STREAMGAUGE_HOME": "/data",
        "STREAMGAUGE_KAFKA_PORT": "1234",
        "STREAMGAUGE_FAIL_ON_DATA_LOSS": "FALSE",
        "STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER": "5",
    }
    settings = Settings.from_environment(given)
    assert (str(settings.home), settings.kafka_port, settings.fail_on_data_loss, settings.max_offsets_per_trigger) == (
        "/data",
        1234,
        False,
        5,
    )
    assert settings.bootstrap_servers == "127.0.0.1:1234"


def test_a_kafka_of_ones_own_goes_before_the_embedded_one():
    assert Settings.from_environment({"KAFKA_BOOTSTRAP_SERVERS": "kafka:9092"}).bootstrap_servers == "kafka:9092"


@pytest.mark.parametrize(("text", "lake"), [("", "/data/lake"), ("/tables", "/tables"), ("file:///tables", "/tables")])
def test_the_lake_is_in_the_home_or_where_it_is_said_to_be(text, lake):
    assert Settings.from_environment({"STREAMGAUGE_HOME": "/data", "LAKE_URI": text}).lake == Path(lake)


def test_another_process_can_be_given_the_same_settings():
    settings = Settings(home=Path("elsewhere"), fail_on_data_loss=False, max_files_per_trigger=None, trigger_seconds=0.5)
    assert Settings.from_environment(settings.environment()) == settings


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("STREAMGAUGE_KAFKA_PORT", "kafka", "65535"),
        ("STREAMGAUGE_KAFKA_PORT", "65536", "65535"),
        ("STREAMGAUGE_SHUFFLE_PARTITIONS", "0", " 1"),
        ("STREAMGAUGE_FAIL_ON_DATA_LOSS", "perhaps", "true or false"),
        ("LAKE_URI", "ftp://host/lake", "s3a://bucket/folder"),
        ("CHECKPOINT_URI", "/data/checkpoints", "s3a://bucket/folder"),
        ("STREAMGAUGE_WIKIMEDIA_WINDOW", "1500 milliseconds", WHOLE_SECONDS),
        ("STREAMGAUGE_WIKIMEDIA_SLIDE", "0.5 seconds", WHOLE_SECONDS),
        ("STREAMGAUGE_TAXI_SLIDE", "0.01 minutes", WHOLE_SECONDS),
        ("STREAMGAUGE_WATERMARK", "ten minutes", WHOLE_SECONDS),
        ("STREAMGAUGE_PARTITION_SKEW", "0 days", WHOLE_SECONDS),
        ("STREAMGAUGE_WIKIMEDIA_WATERMARK", "1 fortnight", WHOLE_SECONDS),
        ("STREAMGAUGE_RESULT_RETENTION", "a month", WHOLE_SECONDS),
        ("STREAMGAUGE_DRIVER_JAVA_OPTIONS", "-Dname='a b", "each quotation mark closed"),
        ("STREAMGAUGE_TOPIC_PREFIX", "team1/", "ASCII letters, digits, '.', '_' and '-'"),
        ("STREAMGAUGE_TOPIC_PREFIX", "a" * 201, "at most 200"),
        ("AWS_REGION", "\udcff", "text in UTF-8"),
        ("AWS_ENDPOINT_URL", "store:9000", "http:// or https://"),
        ("WIKIMEDIA_USER_AGENT", "Łukasz", "Latin-1"),
        ("WIKIMEDIA_USER_AGENT", "me\nX-Other: header", "one line"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_was_expected(variable, text, expected):
    with refused(f"{variable} is {text!r}", expected):
        Settings.from_environment({variable: text})


@pytest.mark.parametrize(
    ("name", "window", "slide"),
    [("TAXI", "10 minutes", "20 minutes"), ("TAXI", "1 hour", "25 minutes"), ("WIKIMEDIA", "60 seconds", "40 seconds")],
)
def test_a_slide_is_a_whole_part_of_the_window(name, window, slide):
    with refused(f"STREAMGAUGE_{name}_SLIDE is {slide!r}", f"expected {window!r}", "whole part"):
        Settings.from_environment({f"STREAMGAUGE_{name}_WINDOW": window, f"STREAMGAUGE_{name}_SLIDE": slide})


def test_without_a_slide_any_window_of_trips_will_do():
    assert Settings.from_environment({"STREAMGAUGE_TAXI_WINDOW": "7 minutes"}).taxi_window == "7 minutes"


def test_a_user_without_a_home_has_the_cache_in_that_of_streamgauge(monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31)
    assert user_cache() == Settings().home / "cache"


@pytest.mark.parametrize("name", ["line\nbreak", "\x1b[2J", "not-utf-8-\udcff"])
@pytest.mark.parametrize(("variable", "text"), PATHS.items())
def test_a_path_that_no_line_can_show_is_refused_by_one_that_can(variable, text, name):
    with refused(f"{variable} is ", "expected ") as error:
        Settings.from_environment({variable: text.format(name)})
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("variable", "address"), [("KAFKA_CLIENT_PROPERTIES", "KAFKA_BOOTSTRAP_SERVERS"), ("SCHEMA_REGISTRY_PROPERTIES", "SCHEMA_REGISTRY_URL")]
)
def test_properties_are_for_servers_of_ones_own(variable, address, tmp_path):
    path = tmp_path / "own.properties"
    path.write_text("")
    with refused(variable, address):
        Settings.from_environment({variable: str(path)})
    settings = Settings.from_environment({variable: str(path), address: "http://own:1"})
    assert Settings.from_environment(settings.environment()) == settings
