"""A row of each declared topic, and every row with one wrong value in one place."""

import json

from contract.domains import TOPICS
from contract.topics import BatchEvent

WINDOW = {"start": "2026-01-01T12:00:00Z", "end": "2026-01-01T13:00:00Z"}
TIME = "2026-01-01T12:30:00Z"
DECLARED = {topic.name: topic.row for topic in TOPICS if topic.row.names()} | {"streaming-metrics, a batch": BatchEvent}
OPERATOR = {"operator": "dedupe", "rows": 1, "bytes": 2, "timers": None}
PROGRESS = {
    **dict.fromkeys(("input_rows_per_second", "processed_rows_per_second"), 1.5),
    **dict.fromkeys(("batch_ms", "state_rows", "state_bytes", "rows_dropped_by_watermark_total"), 1),
    "time": TIME,
    "watermark": TIME,
    "source_lag": {"a-0": 1},
    "state_operators": [OPERATOR],
}
TEXTS = ("zip_code", "device_id", "structure_id", "borough", "zone", "pickup_borough", "dropoff_borough", "wiki", "user", "query", "what")
TIMES = (
    "reached_at",
    "since",
    "last_seen",
    "last_sighting",
    "incident",
    "first_seen",
    "first_activity",
    "last_activity",
    "started",
    "time",
)
VALUES = {
    **dict.fromkeys(TEXTS, "nest-camera-stats"),
    **dict.fromkeys((*TIMES, "started_at", "error_at"), TIME),
    "window": WINDOW,
    "reason": "silent",
    "alert": "back",
    "requested_by": "Bot",
    "verdict": "right",
    "level": "error",
    "event": "progress",
    "duration_ms": {"addBatch": 1},
    "source_lag": {"a-0": 1},
    "source_offsets": {"a-0": 1},
    "rows": {"equal": 1},
    "process": {"host": "here", "pid": 7},
    "progress": PROGRESS,
    "plan": [{"name": "Scan", "detail": "d", "inputs": [0]}],
    **dict.fromkeys(("error", "error_detail", "detail"), "text"),
}
HUGE, MISSING = object(), object()
WRONG = (
    *(MISSING, None, "x", "7", "", 3, -1, 1.5, 10**15, 2**63, HUGE, True, [], [1], {}, {"a": 1}, {"a-0": None}, "<b>*_`$:red[x]`", "\0", "\x1b[2J"),
    *("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-01-01T12:30:00", "2026-01-01", "12:30", "2999-12-31T23:59:59.999Z", 1.7e18),
)  # fmt: skip


def example(name):
    """A row of the topic of that name, as the pipeline writes it."""
    numbers = dict.fromkeys(DECLARED[name].names(), 1)
    state = {"state": "running" if name == "query-states" else "online"}
    return {field: (VALUES | state).get(field, number) for field, number in numbers.items()}


def mutated(row):
    """Every row with one of WRONG in one place: (place, JSON)."""
    for path in _places(row):
        for wrong in WRONG:
            copy = json.loads(json.dumps(row))
            inner = copy
            for part in path[:-1]:
                inner = inner[part]
            if wrong is MISSING:
                del inner[path[-1]]
            else:
                inner[path[-1]] = "HUGE" if wrong is HUGE else wrong
            yield path, json.dumps(copy).replace('"HUGE"', "9" * 400).encode()


def _places(value):
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, inner in parts:
        yield (part,)
        yield from ((part, *rest) for rest in _places(inner))
