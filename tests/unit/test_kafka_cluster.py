"""The Kafka that every program talks to."""

from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.settings import Settings


def test_settings_name_the_embedded_broker_or_ones_own():
    assert Settings(kafka_port=1234).kafka == KafkaCluster("127.0.0.1:1234")
    assert Settings(kafka_bootstrap_servers="a:9092,b:9092").kafka == KafkaCluster("a:9092,b:9092")


def test_it_is_a_value_that_stands_in_messages():
    kafka = KafkaCluster("a:9092")
    assert (f"Kafka at {kafka}", {kafka: 1}[KafkaCluster("a:9092")]) == ("Kafka at a:9092", 1)
