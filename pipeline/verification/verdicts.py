"""Keeps the outcome of each verification in topic `verdicts`, where the dashboard finds it."""

from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from contract.kafka.tombstones import write_rows
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import VERDICTS
from pipeline.verification.outcome import Outcome


def keep(settings: Settings, outcomes: Sequence[Outcome]) -> None:
    """Writes one record per query that has run. Raises StreamgaugeError when Kafka does not take them."""
    verdicts = {outcome.query.encode(): orjson.dumps(_record(outcome)) for outcome in outcomes if outcome.has_run}
    write_rows(settings.kafka, VERDICTS.name, verdicts)


def _record(outcome: Outcome) -> dict[str, object]:
    named = {name: getattr(outcome, name) for name in ("query", "verdict", "sink", "batch", "records", "problem")}
    return {**named, "time": utc_text(datetime.now(UTC)), "rows": outcome.rows.by_kind}
