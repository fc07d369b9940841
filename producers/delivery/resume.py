"""Resumes a stream after the newest event in its topic, so that a restarted simulation does not send late records."""

import time
from collections.abc import Callable
from typing import TypeVar

from infrastructure import durations
from infrastructure.errors import Unavailable
from infrastructure.kafka.errors import TopicMissing
from infrastructure.kafka.recent_records import last_records
from infrastructure.kafka.record_clock import LAST_CLOCK_MS, clock_ms_of
from infrastructure.process.waiting import AWAY_SECONDS, RETRY_SECONDS, Say
from infrastructure.settings import Settings
from producers.delivery.events import MS_PER_SECOND

T = TypeVar("T")

LOOK_BACK_RECORDS = 500
"""Number of records read from the end of each partition. The very last ones may be late or corrupt."""


def newest_event_ms(settings: Settings, topic: str, event_time_ms: Callable[[bytes], int | None], notice: Say) -> int | None:
    """The newest event time in `topic`, ms since 1970. None if the topic is empty.

    Ignores events in the future of their record (settings.future). event_time_ms: reads the event time of a value, None if it has none.
    Waits for a Kafka that does not answer, and reports that to `notice`.
    Raises StreamgaugeError when Kafka does not come back, or does not have the topic.
    """
    future_ms = durations.seconds(settings.future, "STREAMGAUGE_FUTURE") * MS_PER_SECOND
    times_ms = []
    for message in when_it_answers(lambda: last_records(settings.kafka, topic, LOOK_BACK_RECORDS), notice):
        value = message.value()
        time_ms = event_time_ms(value) if value else None
        if time_ms is not None and 0 <= time_ms <= min(clock_ms_of(message), LAST_CLOCK_MS) + future_ms:
            times_ms.append(time_ms)
    return max(times_ms, default=None)


def when_it_answers(ask: Callable[[], T], notice: Say, seconds: float = AWAY_SECONDS) -> T:
    """Calls `ask` until it succeeds, for up to `seconds` while it raises Unavailable. Reports the wait to `notice` once.

    After that it also waits for missing topics, because a broker that just started has them a moment later. Raises the last error of `ask`.
    """
    deadline, is_reported = time.monotonic() + seconds, False
    while True:
        try:
            return ask()
        except (Unavailable, TopicMissing) as error:
            if isinstance(error, TopicMissing) and not is_reported:
                raise
            if not is_reported:
                notice(f"{error}; waiting for it, up to {seconds:.0f} s")
                is_reported = True
            if time.monotonic() > deadline:
                raise
        time.sleep(RETRY_SECONDS)
