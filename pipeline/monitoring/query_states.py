"""Where each query of this process stands: its events folded into the rows of topic `query-states`. Pure; times come from outside."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from contract.text import utc_text
from pipeline.monitoring.measures import Failure

LATE, LATE_TOTAL = "rows_dropped_by_watermark", "rows_dropped_by_watermark_total"


class QueryStates:
    """A row for each query. A query that is started again is a new run with a new run id, and remembers the error of the one before.

    The end of a run may be told after the start of the next one; it is then the newer run that the row is about.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._query_of_run: dict[str, str] = {}
        self._heard: dict[str, datetime] = {}
        self._stands_at: dict[str, Mapping[str, int]] = {}
        self._given_up: set[str] = set()

    def stands_at(self, query: str, source_offsets: Mapping[str, int]) -> None:
        """From where a query will go on when it is started: of each partition ("topic-0"), the offset behind what it has read."""
        self._stands_at[query] = source_offsets

    def started(self, run_id: str, query: str, now: datetime) -> None:
        """A run has begun."""
        self._query_of_run[run_id] = query
        self._given_up.discard(query)
        before = self._rows.get(query, {})
        remembered = {name: before.get(name) for name in ("error", "error_detail", "error_at")}
        self._rows[query] = _row(query, run_id, now) | remembered | {"source_offsets": self._stands_at.get(query, {})}

    def progressed(self, run_id: str, measured: dict[str, Any], now: datetime) -> dict[str, Any]:
        """A batch was done; returns what was measured of it, with the late rows of the run so far."""
        row = self._rows[self.query_of(run_id)]
        late_before = (row["progress"] or {}).get(LATE_TOTAL, 0) if row["run_id"] == run_id else 0
        progress = measured | {LATE_TOTAL: late_before + measured[LATE]}
        if row["run_id"] == run_id:
            row["progress"] = {**progress, "time": utc_text(now)}
            row["source_offsets"] = progress["source_offsets"]
            self._turn(row, "running", now)
        return progress

    def idled(self, run_id: str, now: datetime) -> None:
        """A run waits for records."""
        row = self._rows[self.query_of(run_id)]
        if row["run_id"] == run_id:
            self._turn(row, "idle", now)

    def ended(self, run_id: str, failure: Failure | None, now: datetime) -> None:
        """A run has ended; by a failure, or because it was asked to or there was nothing left to do."""
        row = self._rows[self.query_of(run_id)]
        if row["query"] in self._given_up:
            return  # why it was given up says more than how its last run ended
        if row["run_id"] == run_id:
            self._turn(row, "failed" if failure else "stopped", now)
        if failure:
            row |= _told(failure, now)

    def given_up(self, query: str, why: Failure, now: datetime) -> None:
        """A query is not started again, or could not be started at all."""
        row = self._rows.setdefault(query, _row(query, None, now))
        self._given_up.add(query)
        self._turn(row, "failed", now)
        row |= _told(why, now)

    def query_of(self, run_id: str) -> str:
        """The name of the query that a run is of."""
        return self._query_of_run[run_id]

    def heard(self, query: str, now: datetime) -> dict[str, Any]:
        """The row of a query, as it is published at `now`."""
        self._heard[query] = now
        return {**self._rows[query], "time": utc_text(now)}

    def not_heard_for(self, seconds: float, now: datetime) -> list[str]:
        """The queries that run and of which nothing was published for so long."""
        long_ago = now - timedelta(seconds=seconds)
        return [row["query"] for row in self._active() if self._heard.get(row["query"], long_ago) <= long_ago]

    @property
    def are_any_active(self) -> bool:
        """Whether a query runs, be it idle."""
        return bool(self._active())

    @property
    def partitions(self) -> list[str]:
        """The partitions ("topic-0") that the queries that run read, as far as their batches have told."""
        return sorted({name for row in self._active() for name in row["source_offsets"]})

    def _active(self) -> list[dict[str, Any]]:
        return [row for row in self._rows.values() if row["state"] in {"running", "idle"}]

    @staticmethod
    def _turn(row: dict[str, Any], state: str, now: datetime) -> None:
        if row["state"] != state:
            row |= {"state": state, "since": utc_text(now)}


def _row(query: str, run_id: str | None, now: datetime) -> dict[str, Any]:
    at = utc_text(now)
    none = dict.fromkeys(("error", "error_detail", "error_at", "progress"))
    return {"query": query, "state": "running", "since": at, "started_at": at, "run_id": run_id, "source_offsets": {}, **none}


def _told(failure: Failure, now: datetime) -> dict[str, str | None]:
    return {"error": failure.error, "error_detail": failure.detail, "error_at": utc_text(now)}
