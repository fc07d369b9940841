"""Where a stream goes on: after the newest event that its topic holds, so that a simulation that is started again is not late."""

from collections.abc import Callable

from streamgauge.kafka_cluster import KafkaCluster
from streamgauge.recent_records import last_records

LOOK_BACK_RECORDS = 500
"""How many of the last records of each partition are looked at: the very last may have been sent late, or be damaged."""


def newest_event_ms(kafka: KafkaCluster, topic: str, event_time_ms: Callable[[bytes], int | None]) -> int | None:
    """The newest event time in `topic`, ms since 1970; None when it is empty.

    event_time_ms: reads the time of a value, None for one that has none. Raises StreamgaugeError when Kafka does not answer.
    """
    values = (message.value() for message in last_records(kafka, topic, LOOK_BACK_RECORDS))
    times_ms = [time_ms for value in values if value and (time_ms := event_time_ms(value)) is not None]
    return max(times_ms, default=None)
