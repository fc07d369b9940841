"""What a producer says of a record that the broker refuses."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError
from messages import refused

from infrastructure.kafka.cluster import KafkaCluster
from producers.delivery.sending import Delivery


@pytest.mark.parametrize(
    ("code", "advice"),
    [(KafkaError.INVALID_TIMESTAMP, "set the clock that is wrong"), (KafkaError.MSG_SIZE_TOO_LARGE, "max.message.bytes")],
)
def test_a_record_that_kafka_refuses_is_named_with_what_to_do(code, advice):
    delivery = Delivery(KafkaCluster("127.0.0.1:9"), print)
    record = SimpleNamespace(topic=lambda: "nest-logs", key=lambda: b"home-1", value=lambda: b"{}")
    delivery._on_delivery(None, KafkaError(code), record)
    with refused("topic nest-logs", "home-1", advice):
        delivery.wait(0)
    delivery.close()
