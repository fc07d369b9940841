"""Where a stream goes on: after the newest event that its topic holds, so that a simulation that is started again is not late."""

from collections.abc import Callable

from producers.events import MS_PER_SECOND
from streamgauge import durations
from streamgauge.recent_records import last_records
from streamgauge.record_clock import clock_ms_of
from streamgauge.settings import Settings

LOOK_BACK_RECORDS = 500
"""How many of the last records of each partition are looked at: the very last may have been sent late, or be damaged."""


def newest_event_ms(settings: Settings, topic: str, event_time_ms: Callable[[bytes], int | None]) -> int | None:
    """The newest event time in `topic`, ms since 1970, but for events in the future of their record (settings.future); None when it is empty.

    event_time_ms: reads the time of a value, None for one that has none. Raises StreamgaugeError when Kafka does not answer.
    """
    future_ms = durations.seconds(settings.future, "STREAMGAUGE_FUTURE") * MS_PER_SECOND
    all_ms, counting_ms = [], []
    for message in last_records(settings.kafka, topic, LOOK_BACK_RECORDS):
        value = message.value()
        time_ms = event_time_ms(value) if value else None
        if time_ms is not None:
            all_ms.append(time_ms)
            if time_ms <= clock_ms_of(message) + future_ms:
                counting_ms.append(time_ms)
    # Where all are in the future, a simulation sent them that did not state its clock.
    return max(counting_ms or all_ms, default=None)
