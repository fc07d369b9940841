"""Events that were reported twice with different contents, so that chance decides which report counts."""

import json

import orjson
import pytest
from auditing import Kafka

QUERY = "nest-temperatures"
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
