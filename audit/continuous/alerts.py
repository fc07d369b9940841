"""The alerts of the continuous audit: one when a query becomes wrong, and one when it is right again.

Which queries are told to be wrong is read from the alerts themselves, so neither a kill nor a file that is made anew makes one say it twice, or never
take it back.
"""

from contextlib import suppress
from datetime import UTC, datetime

import orjson

from audit.reading.records import RecordReader
from audit.reading.result_topic import offsets_of
from audit.verdicts.verdict import Verdict
from audit.verdicts.verdict_topic import row_of
from contract.topics import ALERTS, Alert
from infrastructure.kafka.writing import write_rows
from infrastructure.rows import checked, decode_json
from infrastructure.settings import Settings
from infrastructure.text import utc_text
from infrastructure.web.webhook import Webhook

_BY = "audit"
"""The pipeline's alerts and the audit's have the same keys."""


def summary(verdict: Verdict) -> str:
    """What is wrong, in one line."""
    rows = verdict.rows
    counts = f"{rows.wrong:,} of {rows.by_kind['compared']:,} rows of {verdict.sink} are wrong" if rows.wrong else ""
    return "; ".join([*([counts] if counts else []), *verdict.faults, *([] if verdict.problem is None else [verdict.problem])])


def alert(settings: Settings, verdict: Verdict, webhook: Webhook) -> None:
    """Writes an alert on a query that is wrong, or right again, and sends it to the webhook. Raises StreamgaugeError when Kafka does not take it."""
    is_wrong, now = verdict.verdict == "wrong", datetime.now(UTC)
    row = {
        "time": utc_text(now),
        "level": "error" if is_wrong else "resolved",
        "query": verdict.query,
        "what": summary(verdict) if is_wrong else f"{verdict.sink} is right again",
        "detail": orjson.dumps(row_of(verdict, now)).decode() if is_wrong else "",
        "by": _BY,
    }
    write_rows(settings.kafka, ALERTS.name, {verdict.query.encode(): orjson.dumps(row)})
    webhook.send(row)  # last: what is in the topic is not told again


def alerted(settings: Settings, reader: RecordReader) -> set[str]:
    """The queries of which the last alert of an audit says that they are wrong. Raises StreamgaugeError when Kafka does not answer."""
    offsets, wrong = offsets_of(ALERTS, settings), set[str]()
    starts, ends = ({partition: both[number] for partition, both in offsets.items()} for number in (0, 1))
    for records in reader.between(starts, ends):
        for value in records["value"].to_pylist():
            with suppress(ValueError):  # of another program
                row = decode_json(value or b"")
                if row.get("by") == _BY:
                    checked(Alert, row)
                    (wrong.discard if row["level"] == "resolved" else wrong.add)(row["query"])
    return wrong
