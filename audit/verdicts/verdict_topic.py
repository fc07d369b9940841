"""Writes verdicts to topic `verdicts`, where the dashboard finds them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import orjson

from audit.verdicts.show import shortened, what_differs
from audit.verdicts.verdict import Verdict
from contract.create_topics import create_missing
from contract.topics import VERDICTS
from infrastructure.kafka.writing import write_rows
from infrastructure.settings import Settings
from infrastructure.text import utc_text


def write_verdicts(settings: Settings, verdicts: Sequence[Verdict], times: Mapping[str, datetime] = MappingProxyType({})) -> None:
    """Writes one record per query. times: of the verdicts, by query, if that is not now.

    Raises StreamgaugeError when Kafka does not take them.
    """
    now = datetime.now(UTC)
    rows = {verdict.query.encode(): orjson.dumps(row_of(verdict, times.get(verdict.query, now))) for verdict in verdicts}
    create_missing([VERDICTS], settings)  # on a Kafka with ingested topics only, `up` may not have run
    write_rows(settings.kafka, VERDICTS.name, rows)


def row_of(verdict: Verdict, time: datetime) -> dict[str, Any]:
    """The verdict as of `time`. Wrong rows, and their keys, are shortened texts, so that it fits into a record."""
    names = ("query", "verdict", "sink", "batch", "records", "faults", "problem")
    wrong = [
        dict(zip(("kind", "where", "expected", "found"), (row.kind, shortened(row.where), *what_differs(row)), strict=True))
        for row in verdict.differences
    ]
    return {"time": utc_text(time), "rows": verdict.rows.by_kind, **{name: getattr(verdict, name) for name in names}, "differences": wrong}
