"""The declared rows of topics: whatever a record of another program holds, it is a row of the declared types, or refused in one line that names the field."""

import json
import re
import sys
from datetime import UTC, datetime

import pytest
from foreign_rows import DECLARED, TIME, WINDOW, WRONG, example, mutated

from contract.domains import TOPICS
from contract.domains.nest import NEST_CAMERA_STATS, CameraStats
from contract.query_status import decode_event
from dashboard.reading.reader import row_decoder
from infrastructure.kafka.result_table import ResultTable, left_out
from infrastructure.rows import Fields, decoder, json_decoder
from infrastructure.settings import Settings


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.is_result], ids=lambda topic: topic.name)
def test_every_result_declares_its_row(topic):
    assert topic.row.names()


@pytest.mark.parametrize("name", DECLARED)
def test_a_row_as_the_pipeline_writes_it_is_read(name):
    row = decoder(DECLARED[name])(json.dumps(example(name) | {"more": 1}).encode())
    assert set(row) == set(example(name)), "a field that is not declared is ignored"
    assert [value for value in row.values() if value == TIME] == [], "times are read"


@pytest.mark.parametrize("name", DECLARED)
def test_any_other_value_is_refused_with_its_field_or_fits_the_declaration(name):
    decode, as_json = decoder(DECLARED[name]), json_decoder(DECLARED[name])
    refused = 0
    for path, value in mutated(example(name)):
        try:
            row = decode(value)
        except ValueError as error:
            refused += 1
            text = str(error)
            assert "\n" not in text, text
            assert text.startswith((str(path[0]), "number is infinity")), (path, text)
            with pytest.raises(ValueError, match=re.escape(text)):
                as_json(value)
        else:
            assert set(as_json(value)) == set(row)
            for time in (time for time in row.values() if isinstance(time, datetime)):
                assert (time.tzinfo, 1000 <= time.year <= 2999) == (UTC, True)
    assert refused > len(WRONG), "most of these are no rows"


def test_a_field_of_another_type_cannot_be_declared():
    class Unbounded(Fields):
        count: int

    with pytest.raises(TypeError, match=r"a field has type <class 'int'>; expected a type of infrastructure\.rows, such as Count"):
        decoder(Unbounded)(b"{}")


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ({"start": WINDOW["end"], "end": WINDOW["start"]}, "window: expected an end after the start"),
        ({"start": WINDOW["start"], "end": WINDOW["start"]}, "window: expected an end after the start"),
        ({"start": WINDOW["start"], "end": "2999-01-01T00:00:00Z"}, "within a hundred years"),
        ({"start": WINDOW["start"]}, "window.end: Field required"),
        ({"start": "2026-01-01T12:00:00", "end": WINDOW["end"]}, "window.start: expected a time with a time zone"),
    ],
)
def test_a_window_ends_after_its_start(window, reason):
    value = json.dumps(example("nest-camera-stats") | {"window": window}).encode()
    with pytest.raises(ValueError, match=reason):
        decoder(DECLARED["nest-camera-stats"])(value)


def test_rows_of_an_earlier_version_may_lack_what_came_later():
    state = example("query-states")
    del state["source_offsets"]
    assert decoder(DECLARED["query-states"])(json.dumps(state).encode())["source_offsets"] is None


KEY = {"window": {"end": WINDOW["end"], "start": WINDOW["start"]}, "zip_code": "nest-camera-stats"}
NOT_ITS_KEYS = [
    (KEY | {"zip_code": "94107"}, "zip_code: expected '94107' as in the key, found 'nest-camera-stats'"),
    (KEY | {"zip_code": None}, "zip_code: expected None as in the key"),
    (KEY | {"window": WINDOW | {"end": TIME}}, f"end: expected '{TIME}' as in the key"),
]


@pytest.mark.parametrize("decode", [json_decoder(CameraStats), decoder(CameraStats), row_decoder(NEST_CAMERA_STATS, Settings().registry)])
@pytest.mark.parametrize(("key", "reason"), [(KEY, None), *NOT_ITS_KEYS])
def test_a_row_with_the_key_of_another_row_cannot_be_read(decode, key, reason):
    table = ResultTable(decode)
    key, value = json.dumps(key).encode(), json.dumps(example("nest-camera-stats")).encode()
    table.apply(key, value)
    if reason is None:
        assert (len(table.rows()), table.unreadable) == (1, {})
    else:
        assert table.rows() == []
        assert reason in table.unreadable[key]


def test_a_value_that_is_nested_as_deep_as_it_can_be_read_is_refused():
    deep = b"[" * 1020 + b"]" * 1020
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own; a package of other tests raises it
    try:
        with pytest.raises(ValueError, match=r"^time: expected a time .*, found what is nested too deep$"):
            decode_event(b'{"event":"started","query":"a","time":' + deep + b"}")
    finally:
        sys.setrecursionlimit(limit)


def test_the_key_of_a_state_is_its_query():
    table = ResultTable(decoder(DECLARED["query-states"]))
    state = json.dumps(example("query-states") | {"query": "nest-archive"}).encode()
    for key in (b"nest-archive", b"nest-camera-stats"):
        table.apply(key, state)
    assert [row["query"] for row in table.rows()] == ["nest-archive"]
    assert list(table.unreadable) == [b"nest-camera-stats"]


def test_what_cannot_be_read_is_counted_and_the_rest_is_read_on():
    table = ResultTable(json_decoder(DECLARED["nest-camera-stats"]))
    good = example("nest-camera-stats")
    table.apply(b"good", json.dumps(good).encode())
    table.apply(b"\x1b[2Jbad", json.dumps(good | {"count": "many"}).encode())
    table.apply(b"bad", json.dumps(good | {"zip_code": None}).encode())
    assert table.rows() == [good]
    line = left_out("nest-camera-stats", table.unreadable)
    assert line.startswith("2 rows of topic nest-camera-stats cannot be read")
    assert "count: Input should be a valid integer, found 'many'" in line
    assert line.isprintable()
