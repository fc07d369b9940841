"""What is written without Spark, on queries and of the audit: rows as their topics declare them, which readers read. tests/spark/test_rows.py has the others."""

from contextlib import closing
from types import SimpleNamespace

import orjson
import pytest
from mock_kafka import MockKafka

from audit.continuous.alerts import alert, alerted
from audit.reading.records import RecordReader
from audit.verdicts.verdict import RowCounts, Verdict
from audit.verdicts.verdict_topic import write_verdicts
from contract.query_status import decode_event
from contract.topics import ALERTS, QUERY_STATES, STREAMING_METRICS, VERDICTS
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.recent_records import last_records, of_message
from infrastructure.kafka.writing import write_rows
from infrastructure.rows import decoder
from infrastructure.web.webhook import Webhook
from pipeline.monitoring.alerts import Alerts
from pipeline.monitoring.failures import Failure
from pipeline.monitoring.progress import ProgressToKafka

WRONG = Verdict("nest-archive", "a folder", rows=RowCounts(equal=2, missing=1))


@pytest.fixture
def kafka(tmp_path):
    return MockKafka(tmp_path, [topic.name for topic in (ALERTS, QUERY_STATES, STREAMING_METRICS, VERDICTS)])


def rows_of(kafka, topic, decode=None):
    """The rows of the topic; fails if there is a record that is none."""
    return list(map(of_message(decode or decoder(topic.row)), last_records(kafka.settings.kafka, topic.name, 100)))


def test_a_verdict(kafka):
    write_verdicts(kafka.settings, [WRONG, Verdict("nest-crowds", "a topic", problem="no checkpoint")])
    assert {(row["query"], row["verdict"], row["rows"]["equal"]) for row in rows_of(kafka, VERDICTS)} == {
        ("nest-archive", "wrong", 2),
        ("nest-crowds", "not checked", 0),
    }


def test_a_row_that_is_too_large_is_an_error_that_says_so(kafka):
    with pytest.raises(StreamgaugeError, match=r"did not accept 1 of 2 records for topic alerts \(.*too large"):
        write_rows(kafka.settings.kafka, ALERTS.name, {b"small": b"{}", b"large": b"x" * 2_000_000})


def test_alerts_of_the_audit_and_of_the_pipeline(kafka):
    alert(kafka.settings, WRONG, Webhook("", print))
    with closing(Alerts(kafka.settings, print)) as alerts:
        alerts.send("resolved", "nest-archive", "it keeps up again")
    assert sorted(row["level"] for row in rows_of(kafka, ALERTS)) == ["error", "resolved"]


def test_an_alert_of_another_program_is_none_of_the_audits(kafka):
    alert(kafka.settings, WRONG, Webhook("", print))
    for foreign in ({"by": "audit"}, {"by": "audit", "query": ["x"], "level": "error"}, {"by": []}, 5):
        kafka.write(ALERTS.name, orjson.dumps(foreign), key=b"nest-archive")
    with closing(RecordReader(kafka.settings)) as reader:
        assert alerted(kafka.settings, reader) == {"nest-archive"}


def test_the_events_and_the_state_of_a_query(kafka):
    run = {"runId": "run-1", "id": "id-1", "name": "nest-archive"}
    source = {"numInputRows": 40, "endOffset": {"nest-logs": {"0": 10}}, "latestOffset": {"nest-logs": {"0": 15}}}
    rates = {"inputRowsPerSecond": 80.0, "processedRowsPerSecond": 100.0}
    batch = {"batchId": 5, "timestamp": "2026-11-21T12:00:00.000Z", "batchDuration": 400, "durationMs": {"addBatch": 300}, **rates}
    listener = ProgressToKafka(kafka.settings)
    listener.onQueryStarted(SimpleNamespace(**run))
    listener.onQueryProgress(orjson.dumps({**run, **batch, "stateOperators": [], "sources": [source], "sink": {"numOutputRows": 6}}))
    listener.onQueryIdle(SimpleNamespace(**run))
    listener.given_up("nest-crowds", Failure("no topic", "the whole of it"))
    listener.onQueryTerminated(SimpleNamespace(**run, exception=None))
    listener.close()
    events = {row["event"]: row.get("sink_rows") for row in rows_of(kafka, STREAMING_METRICS, decode_event)}
    assert events == {"started": None, "progress": 6, "idle": None, "terminated": None}
    assert {row["query"] for row in rows_of(kafka, QUERY_STATES)} == {"nest-archive", "nest-crowds"}
