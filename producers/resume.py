"""Where a stream goes on: after the newest event that its topic holds, so that a simulation that is started again is not late."""

import uuid
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streamgauge.errors import StreamgaugeError

ANSWER_SECONDS = 10
LOOK_BACK_RECORDS = 500
"""How many of the last records of each partition are looked at: the very last may have been sent late, or be damaged."""


def newest_event_ms(bootstrap_servers: str, topic: str, event_time_ms: Callable[[bytes], int | None]) -> int | None:
    """The newest event time in `topic`, ms since 1970; None when it is empty.

    event_time_ms: reads the time of a value, None for one that has none. Raises StreamgaugeError when Kafka does not answer.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": f"streamgauge-{uuid.uuid4()}", "enable.auto.commit": False, "log_level": 0}
    )
    newest: int | None = None
    try:
        starts, ends = _last_records(consumer, topic)
        consumer.assign(starts)
        while starts and any(position.offset < ends[position.partition] for position in consumer.position(starts)):
            for message in consumer.consume(LOOK_BACK_RECORDS, timeout=0.5):
                value = message.value()
                time_ms = event_time_ms(value) if message.error() is None and value else None
                newest = max(newest or 0, time_ms) if time_ms is not None else newest
    except KafkaException as error:
        msg = f"no Kafka answers at {bootstrap_servers} ({error.args[0].str()}); start one with `streamgauge up`, or correct KAFKA_BOOTSTRAP_SERVERS"
        raise StreamgaugeError(msg) from error
    finally:
        consumer.close()
    return newest


def _last_records(consumer: Consumer, topic: str) -> tuple[list[TopicPartition], dict[int, int]]:
    starts, ends = [], {}
    for number in consumer.list_topics(topic, ANSWER_SECONDS).topics[topic].partitions:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), ANSWER_SECONDS)
        if end > first:
            starts.append(TopicPartition(topic, number, max(first, end - LOOK_BACK_RECORDS)))
            ends[number] = end
    return starts, ends
