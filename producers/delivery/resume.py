"""Where a stream goes on: after the newest event that its topic holds, so that a simulation that is started again is not late."""

import time
from collections.abc import Callable
from typing import TypeVar

from contract import durations
from contract.kafka.errors import KafkaAway, TopicMissing
from contract.kafka.recent_records import last_records
from contract.kafka.record_clock import clock_ms_of
from contract.process.waiting import AWAY_SECONDS, RETRY_SECONDS, Say
from contract.settings import Settings
from producers.delivery.events import MS_PER_SECOND

T = TypeVar("T")

LOOK_BACK_RECORDS = 500
"""How many of the last records of each partition are looked at: the very last may have been sent late, or be damaged."""


def newest_event_ms(settings: Settings, topic: str, event_time_ms: Callable[[bytes], int | None], notice: Say) -> int | None:
    """The newest event time in `topic`, ms since 1970, but for events in the future of their record (settings.future); None when it is empty.

    event_time_ms: reads the time of a value, None for one that has none. A Kafka that does not answer is waited for, which `notice` is told.
    Raises StreamgaugeError when it stays away, or has no such topic.
    """
    future_ms = durations.seconds(settings.future, "STREAMGAUGE_FUTURE") * MS_PER_SECOND
    all_ms, counting_ms = [], []
    for message in when_kafka_answers(lambda: last_records(settings.kafka, topic, LOOK_BACK_RECORDS), notice):
        value = message.value()
        time_ms = event_time_ms(value) if value else None
        if time_ms is not None:
            all_ms.append(time_ms)
            if time_ms <= clock_ms_of(message) + future_ms:
                counting_ms.append(time_ms)
    # Where all are in the future, a simulation sent them that did not state its clock.
    return max(counting_ms or all_ms, default=None)


def when_kafka_answers(ask: Callable[[], T], notice: Say, seconds: float = AWAY_SECONDS) -> T:
    """What `ask` returns; it is asked again for so many `seconds` while it raises KafkaAway, which `notice` is told once.

    A Kafka that has only just come has its topics a moment later: they are waited for too. Raises what `ask` raises in the end.
    """
    deadline, is_told = time.monotonic() + seconds, False
    while True:
        try:
            return ask()
        except (KafkaAway, TopicMissing) as away:
            if isinstance(away, TopicMissing) and not is_told:
                raise
            if not is_told:
                notice(f"{away}; waiting for it, up to {seconds:.0f} s")
                is_told = True
            if time.monotonic() > deadline:
                raise
        time.sleep(RETRY_SECONDS)
