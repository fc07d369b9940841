"""The one place where Kafka clients are made."""

import re
from pathlib import Path

from streamgauge.kafka_cluster import KafkaCluster
from streamgauge.settings import Settings

ROOT = Path(__file__).parents[2]
ROOMS = ("streamgauge", "producers", "pipeline", "dashboard", "benchmarks")
MAKES_A_CLIENT = re.compile(r"bootstrap\.servers|\b(?:Producer|Consumer|AdminClient)\(")


def test_no_client_is_made_anywhere_else():
    sources = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if path.name != "kafka_cluster.py"]
    strays = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sources
        for line in path.read_text().splitlines()
        if MAKES_A_CLIENT.search(line)
    ]
    assert strays == []


def test_settings_name_the_embedded_broker_or_ones_own():
    assert Settings(kafka_port=1234).kafka == KafkaCluster("127.0.0.1:1234")
    assert Settings(kafka_bootstrap_servers="a:9092,b:9092").kafka == KafkaCluster("a:9092,b:9092")


def test_it_is_a_value_that_stands_in_messages():
    kafka = KafkaCluster("a:9092")
    assert (f"Kafka at {kafka}", {kafka: 1}[KafkaCluster("a:9092")]) == ("Kafka at a:9092", 1)
