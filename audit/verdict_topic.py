"""Writes verdicts to topic `verdicts`, where the dashboard finds them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

import orjson

from audit.verdict import Verdict
from contract.kafka.tombstones import write_rows
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import VERDICTS


def write_verdicts(settings: Settings, verdicts: Sequence[Verdict], times: Mapping[str, datetime] = MappingProxyType({})) -> None:
    """Writes one record per query. times: of the verdicts, by query, if that is not now.

    Raises StreamgaugeError when Kafka does not take them.
    """
    now = datetime.now(UTC)
    names = ("query", "verdict", "sink", "batch", "records", "problem")
    rows = [
        {"time": utc_text(times.get(one.query, now)), "rows": one.rows.by_kind, **{name: getattr(one, name) for name in names}}
        for one in verdicts
    ]
    write_rows(settings.kafka, VERDICTS.name, {row["query"].encode(): orjson.dumps(row) for row in rows})
