"""The history of the queries: the newest micro-batches of topic `streaming-metrics`, as points over time."""

from datetime import timedelta

import pandas as pd

from contract.query_status import decode_event
from infrastructure.kafka.follower import Snapshot, per_snapshot
from infrastructure.kafka.recent_records import Recent, of_message
from infrastructure.rows import Row

HISTORY = timedelta(minutes=15)
RECENT = Recent(records=20_000, within=HISTORY)
POINT_SECONDS = 5
GAP = pd.Timedelta(seconds=75)
"""Slightly more than twice the longest silence of the slowest query (one batch every 30 s)."""
COUNTS = ("sink_rows", "too_late")
PARTS = {
    "reading_seconds": ("latestOffset", "getBatch"),
    "planning_seconds": ("queryPlanning",),
    "processing_seconds": ("addBatch",),
    "committing_seconds": ("walCommit", "commitOffsets"),
}
"""Spark's parts of a batch, of which each measure is the sum."""
MEASURES = ("rows_per_second", "processed_per_second", "batch_seconds", *PARTS, "lag", "watermark_age_seconds", "state_bytes")
COLUMNS = ("at", "query", "is_start", *COUNTS, *MEASURES)


@of_message
def decode_point(value: bytes) -> Row:
    """Those of COLUMNS that an event has. Raises ValueError for any other record."""
    event = decode_event(value)
    point = {"at": event["time"], "query": event["query"], "is_start": event["event"] == "started"}
    if event["event"] == "idle":
        return point | {"rows_per_second": 0.0}
    if event["event"] != "progress":
        return point
    age_ms, is_timed = event["watermark_age_ms"], event["batch_ms"] is not None
    return point | {
        "sink_rows": event["sink_rows"],
        "too_late": event["rows_dropped_by_watermark"],
        "rows_per_second": event["input_rows_per_second"],
        "processed_per_second": event["processed_rows_per_second"],
        "batch_seconds": event["batch_ms"] / 1000 if is_timed else None,
        **{
            measure: sum(event["duration_ms"].get(name, 0) for name in names) / 1000 if is_timed else None
            for measure, names in PARTS.items()
        },
        "lag": sum(event["source_lag"].values()),
        "watermark_age_seconds": None if age_ms is None else max(age_ms / 1000, 0),
        "state_bytes": event["state_bytes"],
    }


@per_snapshot
def history_of(snapshot: Snapshot) -> pd.DataFrame:
    """One point per query and POINT_SECONDS: the mean of MEASURES in that time, and the sum of COUNTS.

    Returns COLUMNS and stretch, a number that changes where the query was started or reported nothing for GAP.
    """
    frame = pd.DataFrame(list(snapshot.rows), columns=list(COLUMNS))
    frame = frame.astype({"at": "datetime64[ms, UTC]", "is_start": "bool", **dict.fromkeys((*COUNTS, *MEASURES), "float64")})
    by_point = frame.groupby(["query", frame["at"].dt.floor(f"{POINT_SECONDS}s")])
    points = by_point[list(MEASURES)].mean().join(by_point[list(COUNTS)].sum()).assign(is_start=by_point["is_start"].any())
    points = points.reset_index()[list(COLUMNS)]
    return points.assign(stretch=(points["is_start"] | (points.groupby("query")["at"].diff() > GAP)).cumsum())
