"""The state of each query of this process: folds its events into the rows of topic `query-states`. Pure; times are arguments."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from infrastructure.text import utc_text
from pipeline.monitoring.failures import Failure

LATE, LATE_TOTAL = "rows_dropped_by_watermark", "rows_dropped_by_watermark_total"


class QueryStates:
    """One row per query, that of its newest run. A restarted query is a new run with a new run id; its row keeps the error of the previous run.

    The end of a run may be reported after the start of the next one: it changes the row of its own run, which is no longer published.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._row_of_run: dict[str, dict[str, Any]] = {}
        self._published_at: dict[str, datetime] = {}
        self._resumes_at: dict[str, Mapping[str, int]] = {}
        self._catching_up: set[str] = set()
        self._given_up: set[str] = set()

    def resumes_at(self, query: str, source_offsets: Mapping[str, int], *, catches_up: bool = False) -> None:
        """Records where a query will resume: the next offset of each partition ("topic-0"). catches_up: another run follows that one."""
        self._resumes_at[query] = source_offsets
        (self._catching_up.add if catches_up else self._catching_up.discard)(query)

    def waiting(self, query: str, now: datetime, why: Failure | None = None) -> None:
        """A query is to start: after others, with a new schema, or after a person has removed the cause `why`."""
        self._rows[query] = _row(query, None, now) | {"state": "restarting"} | ({} if why is None else _error_columns(why, now))

    def started(self, run_id: str, query: str, now: datetime) -> None:
        self._given_up.discard(query)
        before = self._rows.get(query, {})
        remembered = {name: before.get(name) for name in ("error", "error_detail", "error_at")}
        row = _row(query, run_id, now) | remembered | {"source_offsets": self._resumes_at.get(query, {})}
        for run in [run for run, earlier in self._row_of_run.items() if earlier["query"] == query][:-1]:
            del self._row_of_run[run]  # only the end of the run before this one can still be reported
        self._rows[query] = self._row_of_run[run_id] = row

    def progressed(self, run_id: str, measured: dict[str, Any], now: datetime) -> dict[str, Any]:
        """A batch has completed. Returns its measures, with the rows that came too late in the run so far."""
        row = self._row_of_run[run_id]
        progress = measured | {LATE_TOTAL: (row["progress"] or {}).get(LATE_TOTAL, 0) + measured[LATE]}
        row |= {"progress": {**progress, "time": utc_text(now)}, "source_offsets": progress["source_offsets"]}
        _set_state(row, "running", now)
        return progress

    def has_read_to(self, offsets: Mapping[str, Mapping[str, int]]) -> list[str]:
        """Queries have read since their last batch. offsets: by query and partition ("topic-0"). Returns the queries that have read further."""
        changed = []
        for row in self._active():
            before = row["source_offsets"]
            if further := {name: end for name, end in offsets.get(row["query"], {}).items() if end > before.get(name, -1)}:
                row["source_offsets"] = {**before, **further}
                changed.append(str(row["query"]))
        return changed

    def idled(self, run_id: str, now: datetime) -> None:
        _set_state(self._row_of_run[run_id], "idle", now)

    def ended(self, run_id: str, failure: Failure | None, now: datetime) -> None:
        """A run has ended: because it was stopped or had nothing left to do, or with a failure after which it restarts, unless it is given up."""
        row = self._row_of_run[run_id]
        if row["query"] in self._given_up:
            return  # the reason for giving up says more than how the last run ended
        _set_state(row, "restarting" if failure or row["query"] in self._catching_up else "stopped", now)
        if failure and self._rows[row["query"]]["run_id"]:  # it does not wait
            self._rows[row["query"]] |= _error_columns(failure, now)

    def given_up(self, query: str, why: Failure, now: datetime) -> None:
        """A query is not restarted, or could not be started at all."""
        row = self._rows.setdefault(query, _row(query, None, now))
        self._given_up.add(query)
        _set_state(row, "failed", now)
        row |= _error_columns(why, now)

    def stopped(self, now: datetime) -> list[str]:
        """The process ends: queries that have not started are stopped. Returns their names."""
        waiting = self._in("restarting")
        for row in waiting:
            _set_state(row, "stopped", now)
        return [row["query"] for row in waiting]

    def query_of(self, run_id: str) -> str:
        return str(self._row_of_run[run_id]["query"])

    def published(self, query: str, now: datetime) -> dict[str, Any]:
        self._published_at[query] = now
        return {**self._rows[query], "time": utc_text(now)}

    def active(self, now: datetime) -> list[dict[str, Any]]:
        """The rows of the running queries at `now`."""
        return [{**row, "time": utc_text(now)} for row in self._active()]

    def not_published_for(self, seconds: float, now: datetime) -> list[str]:
        """The queries, running or to be started, for which nothing was published for `seconds`."""
        long_ago = now - timedelta(seconds=seconds)
        return [
            row["query"] for row in self._in("running", "idle", "restarting") if self._published_at.get(row["query"], long_ago) <= long_ago
        ]

    @property
    def are_any_active(self) -> bool:
        return bool(self._active())

    @property
    def partitions(self) -> list[str]:
        """The partitions ("topic-0") of the running queries, as far as their batches have reported them."""
        return sorted({name for row in self._active() for name in row["source_offsets"]})

    def _active(self) -> list[dict[str, Any]]:
        return self._in("running", "idle")

    def _in(self, *states: str) -> list[dict[str, Any]]:
        return [row for row in self._rows.values() if row["state"] in states]


def _set_state(row: dict[str, Any], state: str, now: datetime) -> None:
    if row["state"] != state:
        row |= {"state": state, "since": utc_text(now)}


def _row(query: str, run_id: str | None, now: datetime) -> dict[str, Any]:
    at = utc_text(now)
    none = dict.fromkeys(("error", "error_detail", "error_at", "progress"))
    return {"query": query, "state": "running", "since": at, "started_at": at, "run_id": run_id, "source_offsets": {}, **none}


def _error_columns(failure: Failure, now: datetime) -> dict[str, str | None]:
    return {"error": failure.error, "error_detail": failure.detail, "error_at": utc_text(now)}
