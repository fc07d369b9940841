"""A row of each declared topic, and every row with one wrong value in one place."""

import json

from contract.domains import TOPICS
from contract.topics import BatchEvent

WINDOW = {"start": "2026-01-01T12:00:00Z", "end": "2026-01-01T13:00:00Z"}
TIME = "2026-01-01T12:30:00Z"
DECLARED = {topic.name: topic.row for topic in TOPICS if topic.row.names()} | {"streaming-metrics, a batch": BatchEvent}
HUGE, MISSING = object(), object()
WRONG = (
    *(MISSING, None, "x", "7", "", 3, -1, 1.5, 10**15, 2**63, HUGE, True, [], [1], {}, {"a": 1}, {"a-0": None}, "<b>*_`$:red[x]`", "\0", "\x1b[2J"),
    *("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-01-01T12:30:00", "2026-01-01", "12:30", "2999-12-31T23:59:59.999Z", 1.7e18),
)  # fmt: skip


def example(name):
    """A row of the topic of that name, as the pipeline writes it."""
    row = valid(DECLARED[name].core_schema())
    return row | {"event": "progress"} if DECLARED[name] is BatchEvent else row


def valid(schema):  # noqa: PLR0911 - a line for each kind
    """A value that the schema of pydantic's core takes, as JSON has it."""
    match schema:
        case {"fields": {"start": _, "end": _}}:
            return WINDOW
        case {"fields": fields}:
            return {name: valid(field) for name, field in fields.items()}
        case {"schema": {"type": "any"}}:
            return TIME
        case {"schema": inner}:
            return valid(inner)
        case {"expected": [value, *_]}:
            return value
        case {"items_schema": items}:
            return [valid(items)]
        case {"values_schema": values}:
            return {"a-0": valid(values)}
    return {"str": "nest-camera-stats", "float": 1.5, "int": 1}[schema["type"]]


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
