"""The reader's schema that is made of all writers' schemas, judged by reading with fastavro."""

import io
import json

import fastavro
import pytest

from infrastructure.registry.nesting import MOST_LEVELS, MOST_TYPE_LEVELS, SchemaTooLarge, most_bytes
from pipeline.formats.avro_schemas import UnusableSchemaError, reader_schema, with_marker


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


def test_a_symbol_of_any_version_is_read_as_it_is():
    def of(*symbols):
        return record(("kind", ["null", {"type": "enum", "name": "Kind", "symbols": symbols, "default": "a"}]))

    writers = of("a", "b"), of("a", "c")
    for order in (writers, writers[::-1]):
        reader = reader_schema(order, OWN)
        assert [read({"kind": kind}, writer, reader)["kind"] for writer, kind in zip(writers, "bc", strict=True)] == ["b", "c"]
        assert read({"kind": None}, writers[0], reader)["kind"] is None
    with pytest.raises(fastavro.read.SchemaResolutionError):
        read({"kind": "d"}, of("a", "d"), reader)


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


def doubled(levels):
    """A record of two records of two records ..., each level defined once."""
    kind = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(levels):
        fields = [{"name": "x", "type": kind}, {"name": "y", "type": f"R{level}"}]
        kind = {"type": "record", "name": f"R{level + 1}", "fields": fields}
    return json.dumps(kind)


def each_in_all_others(number):
    """Records that contain each other: in each, all orders of the others."""
    defined = set()

    def kind(name):
        if name in defined:
            return f"R{name}"
        defined.add(name)
        fields = [{"name": f"f{other}", "type": ["null", kind(other)]} for other in range(number) if other != name]
        return {"type": "record", "name": f"R{name}", "fields": fields}

    return json.dumps(kind(0))


def nested(levels):
    """A record of arrays in arrays ... of an int: as many levels of types, each within another."""
    kind = "int"
    for _ in range(levels - 2):
        kind = {"type": "array", "items": kind}
    return record(("x", kind))


def array_of(kind):
    return record(("id", "long"), ("x", {"type": "map", "values": {"type": "array", "items": kind}}))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ('"string"', "not a record"),
        ("{", "not valid"),
        ("[" * 100_000, "not valid"),
        ('{"type": 5}', "not valid"),
        (record(("title", "Unheard.Of")), "not valid, or refers to other schemas"),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', "not a record"),
        (record(("Title", "string")), "fields title and Title differ by case only"),
        (
            record(("x", {"type": "array", "items": json.loads(record(("a", "int"), ("A", "int"), name="X"))})),
            "fields a and A differ by case only",
        ),
        (record(("id", {"type": "int", "logicalType": "date"})), "logical type of its field id is date; expected none"),
        (record(("id", ["null", {"type": "long", "logicalType": "timestamp-millis"}])), "field id is timestamp-millis; expected none"),
        (doubled(30), "more than 10,000 types, each counted wherever it is used"),
        (each_in_all_others(12), "more than 10,000 types, each counted wherever it is used"),
        (nested(MOST_TYPE_LEVELS + 1), "types are nested more than 50 levels deep"),
        (array_of("null"), "an array whose items take no bytes"),
        (array_of({"type": "null"}), "an array whose items take no bytes"),
        (array_of({"type": "fixed", "name": "F", "size": 0}), "an array whose items take no bytes"),
        (array_of(json.loads(record(("a", "null"), ("b", json.loads(record(name="X"))), name="Y"))), "an array whose items take no bytes"),
    ],
)
def test_a_version_that_cannot_be_read_beside_the_project_s_schema_is_refused_with_the_reason(other, why):
    with pytest.raises(UnusableSchemaError, match=why):
        reader_schema([other], OWN)


@pytest.mark.parametrize(
    "other", [nested(MOST_TYPE_LEVELS), array_of(["null"]), array_of("R"), array_of({"type": "array", "items": "int"})]
)
def test_a_version_at_the_limits_is_read(other):
    assert reader_schema([other], OWN)


def test_two_versions_that_mean_different_times_by_a_field_are_not_read_alike():
    seconds, days = (record(("at", {"type": "long", "logicalType": kind})) for kind in ("timestamp-millis", "timestamp-micros"))
    with pytest.raises(UnusableSchemaError, match="logical type of its field at is timestamp-millis; expected timestamp-micros"):
        reader_schema([seconds, days], OWN)


def test_a_logical_type_that_avro_does_not_have_changes_nothing():
    for odd in ("odd", ["date"], {"date": 1}):
        other = record(("id", {"type": "long", "logicalType": odd}))
        assert read({"id": 1}, other, reader_schema([other], OWN))["id"] == 1


def test_a_field_that_contains_its_own_type_or_only_null_is_left_out():
    writer = record(
        ("id", "long"),
        ("parent", ["null", "R"], None),
        ("children", {"type": "array", "items": {"type": "map", "values": "R"}}),
        ("nothing", "null"),
        (
            "tree",
            {"type": "record", "name": "Tree", "fields": [{"name": "leaf", "type": "int"}, {"name": "left", "type": ["null", "Tree"]}]},
        ),
        ("loop", {"type": "record", "name": "Loop", "fields": [{"name": "again", "type": ["null", "Loop"]}]}),
    )
    row = {"id": 1, "children": [], "nothing": None, "tree": {"leaf": 2, "left": {"leaf": 3}}, "loop": {"again": None}}
    row["parent"] = {**row, "id": 0, "parent": None}
    assert read(row, writer, reader_schema([writer], OWN)) == {"id": 1, "title": None, "tree": {"leaf": 2}}


@pytest.mark.parametrize(
    ("field", "a_level"),
    [
        (("next", ["null", "R"]), 8 + 1 + 1),
        (("next", {"type": "array", "items": "R"}), 8 + 1 + 1),
        (
            ("next", {"type": "record", "name": "X", "fields": [{"name": "f", "type": "float"}, {"name": "r", "type": ["null", "R"]}]}),
            8 + 1 + 4 + 1,
        ),
    ],
)
def test_a_value_of_a_schema_that_contains_its_own_type_is_so_short_that_it_cannot_nest_too_deep(field, a_level):
    assert most_bytes(record(("size", "double"), ("name", "string"), field)) == MOST_LEVELS * a_level


def test_a_schema_that_uses_a_type_twice_has_no_bound():
    size = {"type": "record", "name": "Size", "fields": [{"name": "bytes", "type": "long"}]}
    assert most_bytes(record(("before", size), ("after", "Size"), ("all", {"type": "map", "values": "Size"}))) is None


def test_types_are_counted_wherever_they_are_used_and_not_within_themselves():
    assert most_bytes(doubled(11)) is None, "2,048 records, and their fields"
    assert most_bytes(each_in_all_others(4)) == MOST_LEVELS * 3
    with pytest.raises(SchemaTooLarge):
        most_bytes(doubled(13))


def test_the_marker_is_true_in_whatever_could_be_read():
    assert read({"id": 1, "title": "a"}, OWN, with_marker(OWN, "_is_read"))["_is_read"] is True


def test_a_schema_of_many_records_is_read_once_and_not_once_for_each():
    inner = [(f"f{number}", json.loads(record(("x", "long"), name=f"R{number}"))) for number in range(3_000)]
    assert most_bytes(record(*inner, ("next", ["null", "R"]))) == MOST_LEVELS * (3_000 + 1)
