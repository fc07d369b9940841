"""The reader's schema that is made of all writers' schemas, judged by reading with fastavro."""

import io
import json

import fastavro
import pytest

from pipeline.formats.avro_schemas import reader_schema, with_fields, with_marker


def record(*fields, name="R"):
    return json.dumps(
        {"type": "record", "name": name, "fields": [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]}
    )


def read(row, writer, reader):
    value = io.BytesIO()
    fastavro.schemaless_writer(value, json.loads(writer), row)
    return fastavro.schemaless_reader(io.BytesIO(value.getvalue()), json.loads(writer), json.loads(reader))


OWN = record(("id", "long"), ("title", "string"))


def test_without_a_version_it_reads_what_the_project_knows():
    assert read({"id": 1, "title": "a"}, OWN, reader_schema([], OWN)) == {"id": 1, "title": "a"}


def test_a_field_of_any_version_is_read_and_null_where_the_writer_lacks_it():
    first, second = record(("id", "long"), ("old", "string")), record(("new", ["null", "string"], None), ("id", "long"))
    reader = reader_schema([first, second], OWN)
    assert read({"id": 1, "old": "o"}, first, reader) == {"id": 1, "old": "o", "new": None, "title": None}
    assert read({"id": 2, "new": "n"}, second, reader) == {"id": 2, "old": None, "new": "n", "title": None}


def test_a_default_of_a_version_holds_where_the_writer_lacks_the_field():
    newest = record(("id", "long"), ("size", "long", 7))
    assert read({"id": 1}, record(("id", "long")), reader_schema([newest], OWN))["size"] == 7


@pytest.mark.parametrize("kind", [{"type": "array", "items": "long"}, "boolean"])
def test_a_version_cannot_turn_a_field_of_the_project_into_something_else(kind):
    assert read({"id": 1, "title": "a"}, OWN, reader_schema([record(("title", kind))], OWN)) == {"id": 1, "title": "a"}


def test_a_field_that_a_version_lets_be_null_may_be_null():
    optional = record(("id", ["null", "long"]), ("title", ["string", "null"], "none"))
    assert read({"id": None, "title": None}, optional, reader_schema([optional], OWN)) == {"id": None, "title": None}


def test_the_wider_of_two_numbers_reads_both():
    first, second = record(("id", "long")), record(("id", "int"))
    reader = reader_schema([first, second], OWN)
    assert [read({"id": 1}, writer, reader)["id"] for writer in (first, second)] == [1, 1]


def test_records_within_records_are_merged_too():
    def meta(*fields):
        return {"type": "record", "name": "Meta", "fields": [{"name": name, "type": "string"} for name in fields]}

    first, second = record(("meta", meta("id", "uri"))), record(("meta", ["null", meta("id", "topic")], None))
    reader = reader_schema([first, second], OWN)
    assert read({"meta": {"id": "1", "uri": "u"}}, first, reader)["meta"] == {"id": "1", "uri": "u", "topic": None}
    assert read({"meta": {"id": "1", "topic": "t"}}, second, reader)["meta"] == {"id": "1", "uri": None, "topic": "t"}


def test_a_type_that_is_named_twice_is_defined_once():
    size = {"type": "record", "name": "Size", "fields": [{"name": "bytes", "type": "long"}]}
    writer = record(("before", size), ("after", "Size"))
    reader = reader_schema([writer], writer)
    assert read({"before": {"bytes": 1}, "after": {"bytes": 2}}, writer, reader) == {"before": {"bytes": 1}, "after": {"bytes": 2}}
    (after,) = json.loads(with_fields(reader, ["after"]))["fields"]
    assert after["type"][1]["fields"], "the field that held the definition is gone, so the other one holds it"


@pytest.mark.parametrize("other", ['"string"', "{", record(("title", "Unheard.Of")), '{"type": "enum", "name": "E", "symbols": ["A"]}'])
def test_a_version_that_is_no_whole_record_adds_nothing(other):
    assert reader_schema([other], OWN) == reader_schema([], OWN)


def test_the_marker_is_true_in_whatever_could_be_read():
    assert read({"id": 1, "title": "a"}, OWN, with_marker(OWN, "_is_read"))["_is_read"] is True
