import io
import json

import fastavro
import pytest
from text_tables import expect_rows


def schema_of(fields):
    return json.dumps({"type": "record", "name": "Edit", "fields": fields})


TITLE, BEFORE, AFTER = ({"name": name, "type": kind} for name, kind in (("title", "string"), ("before", "int"), ("after", "int")))
BOT = {"name": "bot", "type": "boolean", "default": False}
V1 = schema_of([TITLE, BEFORE, AFTER, BOT])
V2 = schema_of([TITLE, AFTER, BEFORE, BOT])
OLDEST = schema_of([TITLE, BEFORE, AFTER])
SCHEMAS = {7: V1, 9: V2, 300: OLDEST}


def written(schema_id, title, before, after, **more):
    """A value as confluent-kafka writes it."""
    payload = io.BytesIO()
    edit = {"title": title, "before": before, "after": after, "bot": False, **more}
    fastavro.schemaless_writer(payload, fastavro.parse_schema(json.loads(SCHEMAS[schema_id])), edit)
    return b"\x00" + schema_id.to_bytes(4, "big") + payload.getvalue()


@pytest.fixture
def records(spark):
    return lambda *values: spark.createDataFrame(list(enumerate(values)), "offset bigint, value binary")


def test_the_payload_begins_after_five_bytes(lab, records):
    """F.substring counts from 1, so the payload begins at 6. from_avro takes the payload and the schema that it was written with. The id is big-endian."""
    expect_rows(
        lab.edits(records(written(7, "Berlin", 100, 120), written(7, "Oslo", 80, 75, bot=True)), {7: V1}, V1),
        """
        offset  title   before  after  bot
        0       Berlin  100     120    false
        1       Oslo    80      75     true
        """,
    )


def test_each_value_is_read_with_the_schema_of_its_writer(lab, records):
    """Schema 9 has `after` first. Avro writes no names: with another schema than the writer's, one number is taken for the other."""
    expect_rows(
        lab.edits(records(written(7, "Berlin", 100, 120), written(9, "Berlin", 120, 90)), {7: V1, 9: V2}, V2),
        """
        offset  title   before  after  bot
        0       Berlin  100     120    false
        1       Berlin  120     90     false
        """,
    )


def test_a_field_that_the_writer_did_not_know_has_its_default(lab, records):
    """The option avroSchema of from_avro is the schema to read to: Avro matches its fields with the writer's by name. Id 300 needs two bytes."""
    expect_rows(
        lab.edits(records(written(300, "Tartu", 10, 20), written(9, "Tartu", 20, 25, bot=True)), SCHEMAS, V2),
        """
        offset  title  before  after  bot
        0       Tartu  10      20     false
        1       Tartu  20      25     true
        """,
    )


def test_a_value_that_cannot_be_read_gives_nulls_and_its_neighbours_are_read(lab, records):
    """An unknown id, another first byte, half a value, nothing at all. from_avro stops the query unless its mode is PERMISSIVE."""
    good = written(7, "Berlin", 100, 120)
    unknown, no_prefix, half = b"\x00\x00\x00\x00\x63" + good[5:], b"\x01" + good[1:], good[:-3]
    expect_rows(
        lab.edits(records(unknown, no_prefix, half, None, b'{"title": "Berlin"}', good), SCHEMAS, V2),
        """
        offset  title   before  after  bot
        0       null    null    null   null
        1       null    null    null   null
        2       null    null    null   null
        3       null    null    null   null
        4       null    null    null   null
        5       Berlin  100     120    false
        """,
    )
