"""Events that were reported twice with different contents, so that chance decides which report counts."""

import json
from datetime import datetime, timedelta

import orjson
import pytest
from auditing import TEN_MS, Kafka
from avro import V1, change, in_wire_format

from infrastructure.storage.data_files import data_file

QUERY = "nest-temperatures"
SESSIONS = "wikimedia-editor-sessions"
WINDOW = {"end": "2026-01-01T11:00:00Z", "start": "2026-01-01T10:00:00Z"}


def report(thermostat, temperature, structure):
    """A document of a thermostat, as of 10:00."""
    device = {"structure_id": structure, "last_connection": "2026-01-01T10:00:00Z", "ambient_temperature_c": temperature}
    return orjson.dumps({"devices": {"thermostats": {thermostat: device}}})


@pytest.fixture
def kafka(tmp_path):
    """The query has read one report of thermostat a, two of thermostat b that differ, and one of thermostat c."""
    broker = Kafka(tmp_path, (QUERY, "nest-logs"))
    broker.write("nest-logs", report("a", 20, "one"), report("b", 20, "two"), report("b", 22, "two"), report("c", 24, "three"))
    broker.has_run(QUERY, 4, mode="update", committed=1)
    return broker


def write_row(broker, structure, temperature):
    key = json.dumps({"structure_id": structure, "window": WINDOW}, separators=(",", ":"))
    figures = {f"ambient_temperature_c_{name}": temperature for name in ("avg", "min", "max")}
    broker.write(QUERY, orjson.dumps({"structure_id": structure, "window": WINDOW, "readings": 1, **figures}), key=key)


@pytest.mark.parametrize("counted", [20.00, 22.00])
def test_either_report_may_count_and_the_verdict_says_so(kafka, counted):
    for structure, temperature in {"one": 20.00, "two": counted, "three": 24.00}.items():
        write_row(kafka, structure, temperature)
    for _ in range(5):  # the recount takes one of them by chance, too
        verdict = kafka.verdict(QUERY)
        assert (verdict.verdict, verdict.rows.wrong) == ("right", 0)
        (note,) = [note for note in verdict.notes if "different contents" in note]
        assert note.startswith("1 events")


def test_a_row_that_no_such_event_touches_is_wrong_as_ever(kafka):
    for structure, temperature in {"one": 20.00, "two": 22.00, "three": 25.00}.items():
        write_row(kafka, structure, temperature)
    verdict = kafka.verdict(QUERY)
    assert (verdict.verdict, verdict.rows.wrong) == ("wrong", 1)
    assert '"three"' in verdict.differences[0].where


def test_reports_that_are_the_same_are_one(tmp_path):
    broker = Kafka(tmp_path, (QUERY, "nest-logs"))
    broker.write("nest-logs", report("a", 20, "one"), report("a", 20, "one"))
    broker.has_run(QUERY, 2, mode="update", committed=1)
    write_row(broker, "one", 21.00)
    assert broker.verdict(QUERY).verdict == "wrong"


def write_sessions(broker, sessions):
    for user, first, last, edits, added in sessions:
        window = {"end": f"2026-01-01T10:{last + 5:02}:00Z", "start": f"2026-01-01T10:{first:02}:00Z"}
        row = {"user": user, "window": window, "edits": edits, "bytes_added": added, "bytes_removed": 0}
        broker.write(SESSIONS, orjson.dumps(row), key=json.dumps({"user": user, "window": window}, separators=(",", ":")))


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    """The query has read edits of A, B and C; one of 10:01 was reported as by A, as by B, and with two lengths."""
    monkeypatch.setattr("audit.domains.wikimedia.SchemaRegistry.schema", lambda *_: V1)
    broker = Kafka(tmp_path, (SESSIONS, "wikimedia"))
    edits = [(1, 0, "A", 10), (2, 1, "A", 10), (2, 1, "A", 20), (2, 1, "B", 10), (3, 30, "A", 10), (4, 0, "C", 10), (5, 240, "D", 10)]
    for number, minute, user, grown in edits:
        edit = change(number, at=TEN_MS // 1000 + 60 * minute, user=user, grown=grown)
        broker.write("wikimedia", in_wire_format(edit, 7))
    broker.has_run(SESSIONS, 6, 7, mode="append", committed=2, watermarks=[0, 13], source="wikimedia")
    return broker


@pytest.mark.parametrize(
    "counted",
    [[("A", 0, 1, 2, 20)], [("A", 0, 1, 2, 30)], [("A", 0, 0, 1, 10), ("B", 1, 1, 1, 10)]],
    ids=["as the first", "longer", "by another editor"],
)
def test_any_report_may_have_made_the_sessions_near_it(sessions, counted):
    write_sessions(sessions, [*counted, ("A", 30, 30, 1, 10), ("C", 0, 0, 1, 10)])
    for _ in range(3):
        verdict = sessions.verdict(SESSIONS)
        assert (verdict.verdict, verdict.rows.wrong) == ("right", 0), verdict.differences


def test_other_sessions_of_the_same_editor_or_time_are_wrong_as_ever(sessions):
    write_sessions(sessions, [("A", 0, 1, 2, 20), ("A", 30, 30, 1, 11), ("C", 0, 0, 1, 11)])
    assert sessions.verdict(SESSIONS).rows.different == 2


@pytest.mark.parametrize(("counts", "verdict"), [(2, "right"), (3, "wrong")])
def test_reports_that_differ_in_what_a_table_does_not_count_excuse_none_of_its_rows(tmp_path, monkeypatch, counts, verdict):
    processed = data_file("schemas/wikimedia.processed-value.avsc").read_text()
    monkeypatch.setattr("audit.domains.wikimedia.SchemaRegistry.schema", lambda _, number: {7: V1, 8: processed}[number])
    broker = Kafka(tmp_path, ("wikimedia.processed", "wikimedia"))
    for number, grown in ((1, 10), (2, 10), (2, 20)):
        broker.write("wikimedia", in_wire_format(change(number, at=TEN_MS // 1000, grown=grown), 7))
    broker.has_run("wikimedia-edit-stats", 3, mode="update", committed=1, source="wikimedia")
    for start in (datetime.fromisoformat("2026-01-01T09:59:30Z"), datetime.fromisoformat("2026-01-01T10:00:00Z")):
        window = {"start": start, "end": start + timedelta(seconds=60)}
        texts = {edge: f"{time:%Y-%m-%dT%H:%M:%SZ}" for edge, time in sorted(window.items())}
        key = json.dumps({"requested_by": "Human", "window": texts}, separators=(",", ":"))
        row = {"window": window, "requested_by": "Human", "counts": counts}
        broker.write("wikimedia.processed", in_wire_format(row, 8, processed), key=key)
    found = broker.verdict("wikimedia-edit-stats")
    assert found.verdict == verdict, found.rows
