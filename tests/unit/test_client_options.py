"""STREAMGAUGE_KAFKA_OPTIONS: which options of Spark's Kafka clients it takes, and which it refuses."""

import pytest
from messages import refused

from infrastructure.kafka.client_options import client_options
from infrastructure.settings import Settings
from pipeline.sources.kafka import kafka_options


def test_options_reach_spark_under_kafkas_names_with_or_without_the_prefix():
    settings = Settings.from_environment({"STREAMGAUGE_KAFKA_OPTIONS": " max.poll.records=10  kafka.compression.type=zstd\n"})
    expected = {"kafka.bootstrap.servers": "127.0.0.1:9092", "kafka.max.poll.records": "10", "kafka.compression.type": "zstd"}
    assert kafka_options(settings) == expected


@pytest.mark.parametrize(
    "option",
    [
        "acks=1",
        "kafka.enable.idempotence=false",
        "retries=0",
        "group.id=mine",
        "partitioner.class=Mine",
        "auto.offset.reset=latest",
        "bootstrap.servers=a:1",
        "sasl.jaas.config=secret",
        "ssl.key.password=secret",
        "value.deserializer=Mine",
    ],
)
def test_an_option_that_would_break_a_promise_is_refused_by_name(option):
    name = option.partition("=")[0].removeprefix("kafka.")
    with refused(f"STREAMGAUGE_KAFKA_OPTIONS holds {name}, ", "docs/inside.md") as raised:
        client_options(f"max.poll.records=1 {option}")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("text", ["fetch.max.bytes", "fetch.max.bytes=", "=1", "a = 1", "linger.ms=1 kafka.linger.ms=2"])
def test_text_that_is_no_list_of_options_says_what_is_expected(text):
    with refused("STREAMGAUGE_KAFKA_OPTIONS is ", "name=value"):
        Settings.from_environment({"STREAMGAUGE_KAFKA_OPTIONS": text})
