"""The clock of a record: the time against which its events count as being in the future.

It is the record's Kafka timestamp. A producer that does not run in real time, such as a simulation that plays a minute per second, states
its own time in a header, which takes precedence. The header counts only if there is exactly one and it is a plausible time. It is ignored
on topics where the broker sets timestamps (`message.timestamp.type=LogAppendTime`), because such topics trust no producer's clock.
"""

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from infrastructure.kafka.record_headers import headers_of

CLOCK_MS = "clock_ms"
"""Header name. The value is ms since 1970 in decimal digits."""
LAST_CLOCK_MS = 32_503_679_999_999
"""The end of the year 2999."""
NO_TIMESTAMP_MS = -1
"""Kafka's timestamp of a record without one, as some clients write it. Spark reads it as a time, like any other."""


def clock_header(clock_ms: int) -> tuple[str, bytes]:
    """Name and value of the header."""
    return CLOCK_MS, b"%d" % clock_ms


def clock_ms_of(message: Message) -> int:
    """The clock of the record, in ms since 1970."""
    kind, timestamp_ms = message.timestamp()
    stated = [value for name, value in headers_of(message) if name == CLOCK_MS]
    if kind != TIMESTAMP_CREATE_TIME or len(stated) != 1:
        return timestamp_ms
    text = stated[0] if isinstance(stated[0], bytes) else b""
    is_time = text.isdigit() and len(text) <= len(str(LAST_CLOCK_MS)) and int(text) <= LAST_CLOCK_MS
    return int(text) if is_time else timestamp_ms
