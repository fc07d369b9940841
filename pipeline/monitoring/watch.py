"""Alerts on queries that run and still need a look: they lag, are too slow or stuck, get no records, or their watermark stands still."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from contract.query_status import IDLE, RUNNING, QueryStatus, decode_state, status_of
from infrastructure import durations
from infrastructure.settings import Settings
from infrastructure.text import duration

LAG_SECONDS = 60
"""How long a lag must last: a query that restarts or waits for its trigger is behind for a moment."""
MARGIN = 1.1
"""The input rate and the processing rate of a query that is fast enough differ by chance by less than this factor."""
STUCK_SECONDS = 120
"""How long a query may read nothing while records wait, besides the interval in which real-time mode says what it has read."""
LAG, SLOW, STUCK, SILENT, STANDS_STILL = "lag", "input rate above processing rate", "stuck", "silent source", "the watermark stands still"

Level = Literal["warning", "resolved"]


class QueryWatch:
    """Watches one query. Every warning is followed by a `resolved` when its cause is over. Pure; times are arguments."""

    def __init__(self, settings: Settings) -> None:
        self._limits = {
            LAG: LAG_SECONDS if settings.alert_lag else 0,
            SLOW: settings.alert_slow_seconds,
            STUCK: STUCK_SECONDS
            + (durations.seconds(settings.checkpoint_interval, "STREAMGAUGE_REAL_TIME") if settings.checkpoint_interval else 0),
            SILENT: settings.alert_silent_seconds,
            STANDS_STILL: settings.alert_watermark_seconds,
        }
        self._most_lag = settings.alert_lag
        self._read: object = None
        self._watermark: datetime | None = None
        self._read_when_it_stopped: Mapping[str, int] = {}
        self._since: dict[str, datetime] = {}
        self._warned: set[str] = set()

    def look(self, status: QueryStatus, offsets: Mapping[str, int], now: datetime) -> list[tuple[Level, str]]:
        """Level and text of the alerts that are due at `now`. offsets: up to where the query has read each partition."""
        if status.state not in {RUNNING, IDLE}:
            return []  # a restart, or being given up, is an alert of its own
        read = offsets or status.batch_at  # files have no offsets
        causes = self._causes(status, has_read=read != self._read)
        if STANDS_STILL in causes and STANDS_STILL not in self._since:
            self._read_when_it_stopped = offsets
        elif STANDS_STILL in causes and (idle := sorted(offsets.items() & self._read_when_it_stopped.items())):
            causes[STANDS_STILL] += f", and no record comes to {', '.join(name for name, _ in idle)}"
        self._read, self._watermark = read, status.watermark
        self._since = {cause: self._since.get(cause, now) for cause in causes}
        due = {cause for cause, since in self._since.items() if 0 < self._limits[cause] <= (now - since).total_seconds()}
        alerts: list[tuple[Level, str]] = [("resolved", cause) for cause in sorted(self._warned - due)]
        alerts += [
            ("warning", f"{cause}: {causes[cause]}, for {duration(now - self._since[cause])}") for cause in sorted(due - self._warned)
        ]
        self._warned = due
        return alerts

    def _causes(self, status: QueryStatus, *, has_read: bool) -> dict[str, str]:
        """The problems since the last look, each with its measure."""
        lag, rate, done = status.lag or 0, status.input_rows_per_second or 0, status.processed_rows_per_second
        causes = {}
        if lag > self._most_lag:
            causes[LAG] = f"{lag:,} records, limit {self._most_lag:,}"
        if done is not None and rate > MARGIN * done:
            causes[SLOW] = f"{rate:,.0f} rows/s arrive, and {done:,.0f} rows/s are processed"
        if not has_read and lag > 0:
            causes[STUCK] = f"it reads none of {lag:,} waiting records"
        elif not has_read:
            causes[SILENT] = "no new record"
        is_same = status.watermark is not None and status.watermark == self._watermark
        if is_same and (has_read or STANDS_STILL in self._since):
            causes[STANDS_STILL] = f"it is {status.watermark:%Y-%m-%d %H:%M:%S} UTC"
        return causes


class QueryWatches:
    """Watches the queries of this process."""

    def __init__(self, settings: Settings, alert: Callable[[Level, str, str], None]) -> None:
        """alert: called with level, query and text."""
        self._settings, self._alert = settings, alert
        self._of_query: dict[str, QueryWatch] = {}

    def look(self, rows: Iterable[Mapping[str, Any]], topic_ends: Mapping[str, int]) -> None:
        """Looks at the queries now. rows: as in topic `query-states`. topic_ends: by partition ("topic-0"), the offset of the next record."""
        now = datetime.now(UTC)
        for row in rows:
            state = decode_state(orjson.dumps(row))
            watch = self._of_query.setdefault(state["query"], QueryWatch(self._settings))
            for level, text in watch.look(status_of(state, now, topic_ends), state["source_offsets"], now):
                self._alert(level, state["query"], text)
