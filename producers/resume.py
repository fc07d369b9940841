"""Where a stream goes on: after the newest event that its topic holds, so that a simulation that is started again is not late."""

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from streamgauge.kafka_cluster import KafkaCluster
from streamgauge.kafka_errors import no_answer, raise_if_kept_out, unreadable

ANSWER_SECONDS = 10
LOOK_BACK_RECORDS = 500
"""How many of the last records of each partition are looked at: the very last may have been sent late, or be damaged."""


def newest_event_ms(kafka: KafkaCluster, topic: str, event_time_ms: Callable[[bytes], int | None]) -> int | None:
    """The newest event time in `topic`, ms since 1970; None when it is empty.

    event_time_ms: reads the time of a value, None for one that has none. Raises StreamgaugeError when Kafka does not answer.
    """
    values = (message.value() for message in last_records(kafka, topic, LOOK_BACK_RECORDS))
    times_ms = [time_ms for value in values if value and (time_ms := event_time_ms(value)) is not None]
    return max(times_ms, default=None)


def last_records(kafka: KafkaCluster, topic: str, count: int) -> list[Message]:
    """The last `count` records of each partition; raises StreamgaugeError when Kafka does not answer, or does not allow it."""
    raise_if_kept_out(kafka)
    consumer = kafka.consumer()
    messages: list[Message] = []
    try:
        starts, ends = _where_they_are(consumer, topic, count)
        consumer.assign(starts)
        while starts and any(position.offset < ends[position.partition] for position in consumer.position(starts)):
            taken = consumer.consume(count, timeout=0.5)
            if not_allowed := next(filter(None, (unreadable(kafka, topic, message.error()) for message in taken)), None):
                raise not_allowed
            messages += [message for message in taken if message.error() is None]
    except KafkaException as error:
        raise no_answer(kafka, error) from error
    finally:
        consumer.close()
    return messages


def _where_they_are(consumer: Consumer, topic: str, count: int) -> tuple[list[TopicPartition], dict[int, int]]:
    starts, ends = [], {}
    for number in consumer.list_topics(topic, ANSWER_SECONDS).topics[topic].partitions:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), ANSWER_SECONDS)
        if end > first:
            starts.append(TopicPartition(topic, number, max(first, end - count)))
            ends[number] = end
    return starts, ends
