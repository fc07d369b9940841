"""`streamgauge report`: records of a result topic in, rows and columns out."""

import orjson
import pytest
from auditing import Kafka
from foreign_rows import example

from contract.domains import DOMAINS
from infrastructure.errors import StreamgaugeError
from infrastructure.output.row_formats import Rows, as_csv
from streamgauge.operations.report import report_rows, with_columns

WINDOW = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}
IN_JSON = [topic for domain in DOMAINS for topic in domain.results if not topic.is_avro]


@pytest.fixture
def kafka(tmp_path):
    return Kafka(tmp_path, [topic.name for topic in IN_JSON])


def write(kafka, topic, key, row):
    kafka.write(topic, orjson.dumps(row), key=orjson.dumps(key))


def test_every_result_table_is_printed_by_its_name_and_by_that_of_its_query(kafka):
    for topic in IN_JSON:
        row = example(topic.plain_name)
        write(kafka, topic.name, {name: row[name] for name in ("window", "device_id") if name in row}, row)
        assert report_rows(topic.plain_name, kafka.settings, 0, pytest.fail) == [row], topic
    queries = {topic.query for topic in IN_JSON}
    assert {"nest-camera-status", "nest-camera-activity", "nest-crowds", "taxi-zone-sessions-early"} < queries
    for query in queries:
        assert report_rows(query, kafka.settings, 0, pytest.fail), query


def test_rows_are_in_the_order_of_their_windows_and_then_of_their_key(kafka):
    later = {"start": "2026-01-01T11:00:00Z", "end": "2026-01-01T12:00:00Z"}
    written = [(later, "a", 1, 7), (WINDOW, "b", 10, 8), (WINDOW, "b", 2, 9), (WINDOW, "a", 3, 1)]
    for window, wiki, namespace, edits in written:
        key = {"namespace": namespace, "wiki": wiki, "window": window}
        counts = {"edits": edits, "bytes_added": 0, "bytes_removed": 0}
        write(kafka, "wikimedia-wiki-stats", key, {"wiki": wiki, "namespace": namespace, "window": window} | counts)
    assert [row["edits"] for row in report_rows("wikimedia-wiki-stats", kafka.settings, 0, pytest.fail)] == [1, 9, 8, 7]
    assert [row["edits"] for row in report_rows("wikimedia-wiki-stats", kafka.settings, 8, pytest.fail)] == [9, 8]


def test_rows_with_keys_of_another_program_are_printed(kafka):
    row = {"zip_code": "94103", "window": WINDOW, "count": 3}
    for number, key in enumerate((b"7", b"[]", b"a text", b"\xff")):
        kafka.write("nest-camera-stats", orjson.dumps(row | {"count": number}), key=key)
    assert [row["count"] for row in report_rows("nest-camera-stats", kafka.settings, 0, pytest.fail)] == [0, 1, 2, 3]


def test_a_table_without_counts_refuses_a_least_count(kafka):
    with pytest.raises(StreamgaugeError, match="--min-count: rows of nest-camera-status have no count; leave the option out"):
        report_rows("nest-camera-status", kafka.settings, 1, pytest.fail)


def test_the_name_of_no_table_is_refused_with_those_that_there_are(kafka):
    with pytest.raises(StreamgaugeError, match=r"nest-archiv.*nest-camera-stats"):
        report_rows("nest-archiv", kafka.settings, 0, pytest.fail)


def test_a_field_that_only_some_rows_have_is_a_column():
    assert with_columns([{"a": 1}, {"a": 2, "b": 3}], is_flat=True) == Rows(["a", "b"], [[1, None], [2, 3]])


def test_the_window_comes_first_as_two_columns():
    rows = [{"zip_code": "94107", "window": WINDOW, "count": 3}, {"count": 4, "window": WINDOW, "zip_code": None}]
    found = with_columns(rows, is_flat=True)
    assert as_csv(found.columns, found.rows).splitlines() == [
        "window_start,window_end,zip_code,count",
        "2026-01-01T10:00:00Z,2026-01-01T11:00:00Z,94107,3",
        "2026-01-01T10:00:00Z,2026-01-01T11:00:00Z,,4",
    ]


def test_without_rows_there_are_no_columns():
    assert with_columns([], is_flat=True) == Rows([], [])
