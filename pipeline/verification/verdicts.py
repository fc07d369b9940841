"""Keeps the outcome of each verification in topic `verdicts`, where the dashboard finds it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import orjson
from confluent_kafka import KafkaError, KafkaException, Message

from contract.kafka.errors import forbidden, is_forbidden
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import VERDICTS
from pipeline.verification.outcome import Outcome

SEND_SECONDS = 10


def keep(settings: Settings, outcomes: Sequence[Outcome]) -> str | None:
    """Writes one record per query that has run. Returns why they could not be kept: the verification itself is done. None if they are."""
    refused: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    try:
        producer = settings.kafka.producer({"message.timeout.ms": SEND_SECONDS * 1000})
        for outcome in outcomes:
            if outcome.has_run:
                producer.produce(VERDICTS.name, key=outcome.query, value=orjson.dumps(_record(outcome)), on_delivery=note)
        unsent = producer.flush(SEND_SECONDS)
    except (KafkaException, BufferError) as error:
        return f"the verdicts are not in topic {VERDICTS.name}: {error}"
    if refused and is_forbidden(refused[0]):
        return str(forbidden(settings.kafka, f"write to topic {VERDICTS.name}"))
    if refused:
        return f"the verdicts are not in topic {VERDICTS.name}: {refused[0].str()}; `streamgauge up` creates missing topics"
    return f"the verdicts are not in topic {VERDICTS.name}: Kafka at {settings.kafka} took none in {SEND_SECONDS} s" if unsent else None


def _record(outcome: Outcome) -> dict[str, object]:
    rows = {"compared": outcome.rows.compared, **asdict(outcome.rows)}
    named = {name: getattr(outcome, name) for name in ("query", "verdict", "sink", "batch", "records", "problem")}
    return {**named, "time": utc_text(datetime.now(UTC)), "rows": rows}
