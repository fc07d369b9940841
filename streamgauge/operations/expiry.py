"""Deletes old rows of the result topics, so that the tables stay bounded.

The rule uses event time, because recorded data may be years old. In each table, it deletes the rows whose window ended at or before the end
of the newest window minus STREAMGAUGE_RESULT_RETENTION.

This is safe while queries write. A query changes only windows that end after its watermark. The watermark is at most
STREAMGAUGE_PARTITION_SKEW plus the watermark's delay behind the newest event, and that event is at most one window length before the end of
the newest window. The retention is longer than the three together, so no new event can change a deleted row. One batch may still write
expired rows: a batch that covers a long time, such as the first one over a year of data, or one that reruns after a kill. It writes whole
rows from its own state, so they are correct while they exist, and the next round deletes them again. The same holds for a session that goes on for as long
as the retention: its key says only when it started.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from contract.domains import TOPICS
from contract.topics import Topic
from contract.windows import utc, window_of
from infrastructure import durations
from infrastructure.errors import StreamgaugeError, raise_all
from infrastructure.kafka.errors import KafkaUnavailable
from infrastructure.kafka.result_table import read_keys
from infrastructure.kafka.writing import write_rows
from infrastructure.settings import Settings

TABLES: tuple[Topic, ...] = tuple(topic for topic in TOPICS if topic.has_windows)
"""The result topics that expire."""
MAX_FIXED_WINDOW_SECONDS = 60
"""The longest query window that no setting changes, except sessions: a minute, of wikis."""


@dataclass(frozen=True)
class Expiry:
    """The findings of one round in a table.

    cut_off: rows whose window ended at or before it are expired; None for a table without windows. expired: their keys.
    unclear: the number of keys without a readable window, which are kept. doubt: why nothing is deleted although rows are expired.
    """

    topic: str
    rows: int
    cut_off: datetime | None
    expired: tuple[bytes, ...]
    unclear: int
    doubt: str | None = None


def retention_seconds(settings: Settings) -> float:
    """STREAMGAUGE_RESULT_RETENTION in seconds. Raises StreamgaugeError when a query might still change rows that it would delete."""
    retention = durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")
    watermarks = {"STREAMGAUGE_WATERMARK": settings.watermark, "STREAMGAUGE_WIKIMEDIA_WATERMARK": settings.wikimedia_watermark}
    watermark = max(durations.seconds(text, variable) for variable, text in watermarks.items())
    skew = durations.seconds(settings.partition_skew, "STREAMGAUGE_PARTITION_SKEW")
    windows = {
        "STREAMGAUGE_NEST_WINDOW": settings.nest_window,
        "STREAMGAUGE_TAXI_WINDOW": settings.taxi_window,
        "STREAMGAUGE_WIKIMEDIA_WINDOW": settings.wikimedia_window,
    }
    window = max(MAX_FIXED_WINDOW_SECONDS, *(durations.seconds(text, variable) for variable, text in windows.items()))
    least = watermark + skew + window
    if retention <= least:
        msg = f"STREAMGAUGE_RESULT_RETENTION is {settings.result_retention!r}; expected more than {timedelta(seconds=least)}, which is the watermark, STREAMGAUGE_PARTITION_SKEW and a window together: a query may still change windows so old. Choose a longer retention"
        raise StreamgaugeError(msg)
    return retention


def expire(settings: Settings, *, dry_run: bool) -> Iterator[Expiry]:
    """Examines each table and deletes its expired rows unless `dry_run`. Yields the findings table by table.

    Raises StreamgaugeError when the retention is too short, or Kafka cannot be reached; and at the end when a table is missing, or refused.
    """
    retention, problems = retention_seconds(settings), list[StreamgaugeError]()
    for topic in TABLES:
        try:
            expiry = expiry_of(topic.name, read_keys(settings.kafka, topic.name), retention)
            if expiry.expired and expiry.doubt is None and not dry_run:
                write_rows(settings.kafka, topic.name, dict.fromkeys(expiry.expired))
        except KafkaUnavailable:
            raise
        except StreamgaugeError as error:
            problems.append(error)
        else:
            yield expiry
    raise_all(problems)


def expiry_of(topic: str, keys: list[bytes], retention: float) -> Expiry:
    """Determines the expired rows of a table with these keys. Pure. retention: in seconds."""
    windows = {key: window for key in keys if (window := window_of(key)) is not None}
    unclear = len(keys) - len(windows)
    if not windows:
        return Expiry(topic, len(keys), None, (), unclear)
    newest = max(windows.values(), key=lambda window: window.end)
    limit = newest.end - timedelta(seconds=retention)
    expired = tuple(key for key, window in windows.items() if window.end <= limit)
    # All windows of one event contain it, so each overlaps every other.
    is_alone = all(window == newest or window.end > newest.start for window in windows.values() if window.end > limit)
    doubt = (
        f"nothing newer than {utc(limit)} would stay but the window that ends at {utc(newest.end)}, as after one record with a wrong clock; when others follow it, the old ones go"
        if expired and is_alone
        else None
    )
    return Expiry(topic, len(keys), limit, expired, unclear, doubt)


def sentence(expiry: Expiry, *, dry_run: bool) -> str:
    """The message about one round in one table."""
    unclear_text = f"; {expiry.unclear} rows have no window in their key and are left alone" if expiry.unclear else ""
    if expiry.cut_off is None:
        return f"{expiry.topic}: {'empty' if not expiry.rows else 'nothing to delete'}{unclear_text}"
    if expiry.doubt is not None:
        return f"{expiry.topic}: {len(expiry.expired)} of {expiry.rows} rows are left alone: {expiry.doubt}{unclear_text}"
    if not expiry.expired:
        return f"{expiry.topic}: nothing to delete, the windows of all {expiry.rows} rows end after {utc(expiry.cut_off)}{unclear_text}"
    verb = "would be deleted" if dry_run else "deleted"
    return f"{expiry.topic}: {len(expiry.expired)} of {expiry.rows} rows {verb}, windows that ended by {utc(expiry.cut_off)}{unclear_text}"
