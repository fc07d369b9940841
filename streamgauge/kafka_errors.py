"""What the errors of a Kafka client say to a person."""

from confluent_kafka import KafkaException

from streamgauge.kafka_cluster import KafkaCluster


def reason(error: KafkaException | TimeoutError, seconds: float) -> str:
    """Why a request failed that was given so many `seconds`."""
    return error.args[0].str() if isinstance(error, KafkaException) else f"no answer within {seconds:g} s"


def no_kafka(kafka: KafkaCluster, error: KafkaException) -> str:
    """That no broker answers, and what to do."""
    return f"no Kafka answers at {kafka} ({error.args[0].str()}); start one with `streamgauge up`, or correct KAFKA_BOOTSTRAP_SERVERS"
