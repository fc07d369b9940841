"""The schemas that queries know: a registry in, values that are read and the reasons of dead letters out."""

import json
import struct

import pytest
from avro import V1, V2, change, in_wire_format, with_field
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from infrastructure.registry.client import RegistryUnavailable
from pipeline.domains.wikimedia import CHANGES, changes
from pipeline.formats.confluent_avro import MOST_UNKNOWN_IDS, schema_ids, unknown_ids
from pipeline.formats.schema_book import AGAIN_SECONDS, MOST_TIMES, NEAR, SchemaBook

OWN = json.loads(V1)


class Registry:
    """A registry that holds `versions` of the subject and `others`, by id. asked: the ids that it was asked for one by one."""

    def __init__(self, versions, others=None):
        self.own, self.others, self.asked, self.is_away = versions, others or {}, [], False

    def versions(self, _):
        if self.is_away:
            msg = "away"
            raise RegistryUnavailable(msg)
        return dict(self.own)

    def schema(self, number):
        self.asked.append(number)
        return self.others.get(number)


def foreign(name, kind, **more):
    """A record that has nothing but this field."""
    return json.dumps({"type": "record", "name": "Foreign", "fields": [{"name": name, "type": kind, **more}]})


def outcomes(records, schemas, *values):
    """By value, the reason why it cannot be read, or the change's id. The archive's rows are as many as those with an id."""
    frame = records(*values)
    read = F.transform(
        F.array(schemas.event(F.col("value"))), lambda event: F.coalesce(schemas.reason(F.col("value"), event), event["id"].cast("string"))
    )[0]
    found = [row.found for row in frame.withColumn("found", read).orderBy("offset").collect()]
    assert changes(frame, schemas).count() == sum(one is None or one.isdecimal() for one in found)
    return found


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (with_field("User", "string", default=""), "the names of its fields user and User differ by case only"),
        (with_field("_IS_READ", "boolean", default=True), "it has a field _is_read, whose name is reserved"),
        (foreign("amount", {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}), "precision"),
        (foreign("timestamp", {"type": "int", "logicalType": "date"}), "the logical type of its field timestamp is date; expected none"),
        (foreign("size", "long", default="large"), "Default value <large> must match"),
        (foreign("a-b", "long"), "Illegal character"),
        (foreign("title", "Unheard.Of"), "refers to other schemas"),
        ('"string"', "it is not a record"),
    ],
)
def test_values_of_a_schema_that_cannot_be_read_are_dead_letters_that_name_it_and_their_neighbours_count(records, schema, why):
    values = in_wire_format(change(1, at=0), 3), b"\x00\x00\x00\x00\x07\x02", in_wire_format(change(2, at=0), 5, V2)
    for registry in (Registry({3: V1, 7: schema, 5: V2}), Registry({3: V1, 5: V2}, {7: schema})):
        book = SchemaBook(registry)
        book.learn(CHANGES, [7], {})
        first, second, third = outcomes(records, book.of(CHANGES), *values)
        assert (first, third) == ("3000000001", "3000000002")
        assert second.startswith("the schema of id 7 cannot be used: ")
        assert why in second


def test_an_alias_in_one_schema_changes_nothing_of_the_values_of_others(records):
    kept = [field for field in OWN["fields"] if field["name"] != "wiki"]
    renamed = json.dumps(
        {**OWN, "fields": [*kept, {"name": "wiki_name", "type": ["null", "string"], "default": None, "aliases": ["wiki"]}]}
    )
    book = SchemaBook(Registry({3: V1}, {7: renamed}))
    book.learn(CHANGES, [7], {})
    values = [in_wire_format(change(1, at=0), 3), in_wire_format({**change(2, at=0), "wiki_name": "new"}, 7, renamed)]
    assert outcomes(records, book.of(CHANGES), *values) == ["3000000001", "3000000002"]
    rows = changes(records(*values), book.of(CHANGES)).select("wiki", "wiki_name").collect()
    assert [tuple(row) for row in rows] == [("enwiki", None), (None, "new")]


def test_of_two_schemas_that_contradict_each_other_the_older_one_is_read(spark):  # noqa: ARG001 - the book asks Spark
    first, second = with_field("Size", "long", default=0), with_field("size", "long", default=0)
    book = SchemaBook(Registry({3: first, 4: second}, {2: V1}))
    book.learn(CHANGES, [2], {})
    assert list(book.of(CHANGES).unusable) == [4]
    numbers = SchemaBook(Registry({3: with_field("x", "string", default="")}, {2: foreign("x", {"type": "array", "items": "long"})}))
    numbers.learn(CHANGES, [2], {})
    assert numbers.of(CHANGES).unusable == {2: "a field of it has another type in another schema"}


def test_a_field_that_contains_its_own_type_is_left_out_and_the_rest_of_the_record_counts(records):
    recursive = with_field("parent", ["null", f"{OWN['namespace']}.{OWN['name']}"], default=None)
    alone, child = change(1, at=0), change(2, at=0, parent=change(3, at=0))
    linked = json.dumps(
        {"type": "record", "name": "Linked", "fields": [{"name": "n", "type": "long"}, {"name": "next", "type": ["null", "Linked"]}]}
    )
    book = SchemaBook(Registry({3: V1, 4: recursive}, {9: linked}))
    book.learn(CHANGES, [9], {})
    deep, too_deep = (b"\x00\x00\x00\x00\x09" + b"\x02\x02" * levels + b"\x02\x00" for levels in (490, 1_000_000))
    values = in_wire_format(alone, 3), in_wire_format(alone, 4, recursive), in_wire_format(child, 4, recursive), deep, too_deep
    why = "longer than 1,000 bytes, so that it may nest too deep: the schema of id 9 contains its own type"
    assert outcomes(records, book.of(CHANGES), *values) == ["3000000001", "3000000001", "3000000002", None, why]


def test_an_id_that_the_registry_did_not_have_is_asked_for_again_after_a_while(records):
    now, registry = [0.0], Registry({3: V1})
    book = SchemaBook(registry, lambda: now[0])
    book.learn(CHANGES, [5], {})
    before = book.of(CHANGES)
    registry.others[5] = V2
    assert not book.is_outdated(CHANGES, before), "it has just been asked"
    now[0] = AGAIN_SECONDS
    registry.is_away = True
    assert not book.is_outdated(CHANGES, before)
    registry.is_away, now[0] = False, 3 * AGAIN_SECONDS
    assert book.is_outdated(CHANGES, before)
    assert not book.is_outdated(CHANGES, book.of(CHANGES))
    assert outcomes(records, book.of(CHANGES), in_wire_format(change(2, at=0), 5, V2)) == ["3000000002"]
    assert registry.asked == [5, 5]


def test_an_id_that_the_registry_did_not_have_may_be_a_new_schema_s_in_later_records(records):
    registry = Registry({3: V1})
    book = SchemaBook(registry)
    book.learn(CHANGES, [5], {0: 1})
    before, late = book.of(CHANGES), in_wire_format(change(2, at=0), 5, V2)
    assert outcomes(records, before, late) == ["the registry has no Avro schema of id 5"]
    with pytest.raises(PySparkException) as failure:
        outcomes(records, before, late, late)
    assert unknown_ids(str(failure.value)) == {5}
    assert schema_ids(records(late, late), before) == [5]
    registry.own[5] = V2
    book.doubt(CHANGES, before, [5])
    book.learn(CHANGES, [5], {0: 2})
    known = book.of(CHANGES)
    assert outcomes(records, known, late, late) == ["3000000002", "3000000002"]
    book.doubt(CHANGES, before, [5])  # of a second query that ran with the same schemas
    book.learn(CHANGES, [5], {0: 2})
    assert book.of(CHANGES) is known


def test_an_id_that_comes_again_and_again_ends_a_bounded_number_of_runs(records):
    registry, value = Registry({3: V1}), in_wire_format(change(2, at=0), 5, V2)
    book = SchemaBook(registry)
    for offset in range(MOST_TIMES):
        schemas = book.of(CHANGES)
        assert schema_ids(records(*[value] * (offset + 1)), schemas) == [5]
        book.doubt(CHANGES, schemas, [5])
        book.learn(CHANGES, [5, 5, 5], {0: offset + 1})  # the failure names it, and so do unread and newest records
    assert outcomes(records, book.of(CHANGES), *[value] * 9) == ["the registry has no Avro schema of id 5"] * 9
    assert registry.asked == [5] * MOST_TIMES


def test_an_id_that_is_far_from_those_of_schemas_is_asked_for_once(records):
    registry, far = Registry({3: V1}), 3 + NEAR + 1
    value = in_wire_format(change(2, at=0), far, V2)
    book = SchemaBook(registry)
    book.learn(CHANGES, [far - 1, far], {0: 1})
    schemas = book.of(CHANGES)
    assert outcomes(records, schemas, *[value] * 2) == [f"the registry has no Avro schema of id {far}"] * 2
    near = in_wire_format(change(2, at=0), far - 1, V2)
    assert schema_ids(records(value, near, value), schemas) == [far - 1]


def test_random_ids_cost_a_bounded_number_of_questions_until_the_book_is_opened_again(records):
    now, registry = [0.0], Registry({3: V1})
    book = SchemaBook(registry, lambda: now[0])
    book.learn(CHANGES, range(1000, 3000), {0: 9})
    full = book.of(CHANGES)
    assert (len(registry.asked), full.is_full, len(full.absent)) == (MOST_UNKNOWN_IDS, True, MOST_UNKNOWN_IDS)
    book.learn(CHANGES, range(5000, 7000), {0: 9})
    assert len(registry.asked) == MOST_UNKNOWN_IDS
    good = in_wire_format(change(1, at=0), 3)
    values = [b"\x00" + struct.pack(">I", number) + good[5:] for number in (1000, 6000)]
    assert outcomes(records, full, good, *values) == [
        "3000000001",
        "the registry has no Avro schema of id 1000",
        f"more than {MOST_UNKNOWN_IDS} ids came that the registry does not have, and it was not asked for id 6000",
    ]
    now[0] = AGAIN_SECONDS
    assert book.is_outdated(CHANGES, full)
    assert not book.of(CHANGES).is_full
