"""Where the table of a topic is, and the schema beside it."""

import json

import pytest
from messages import refused
from pyspark.sql import types as T  # noqa: N812

from contract.settings import Settings
from pipeline.ingest.location import Location, TableSchema, locations
from pipeline.ingest.upsert import ingests

COLUMNS = T.StructType([T.StructField("x.y", T.ArrayType(T.StructType([T.StructField("a b", T.LongType())])))])


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


def test_places_follow_from_the_topic(settings, tmp_path):
    location = Location.of("my.topic-1", settings)
    assert location.name == "my_topic_1"
    assert location.table == tmp_path / "lake" / "my_topic_1"
    assert location.deletions == tmp_path / "lake" / "_deletions" / "my_topic_1"
    assert location.schema == tmp_path / "lake" / "my_topic_1.schema.json"


def test_for_debugging_everything_has_another_name(settings):
    own, debug = Location.of("my.topic-1", settings), Location.of("my.topic-1", settings, debug=True)
    assert (debug.name, debug.query, own.query) == ("my_topic_1_debug", "ingest-my.topic-1-debug", "ingest-my.topic-1")
    assert not {own.table, own.deletions, own.schema} & {debug.table, debug.deletions, debug.schema}
    for location in (own, debug):
        TableSchema("my.topic-1", COLUMNS).write(location.schema)
    assert locations(settings) == [own, debug]
    assert [query.name for query in ingests(settings)] == [own.query, f"{own.query}-dead-letters", debug.query]
    with refused("my_topic_1_debug", "topic my.topic-1"):
        Location.of("my-topic-1-debug", settings)


def test_a_schema_is_kept_as_readable_json(settings):
    location = Location.of("t", settings)
    schema = TableSchema("t", COLUMNS, {"m": "mixed types"}, ("later",))
    schema.write(location.schema)
    assert TableSchema.read(location.schema) == schema
    kept = json.loads(location.schema.read_text())
    assert (kept["topic"], kept["kept_as_text"], kept["columns"]["fields"][0]["name"]) == ("t", {"m": "mixed types"}, "x.y")
    assert [one.topic for one in locations(settings)] == ["t"]


def test_without_one_there_is_none(settings):
    assert TableSchema.read(Location.of("t", settings).schema) is None
    assert locations(settings) == []


@pytest.mark.parametrize("rubbish", ["", "{}", "[]", '{"topic": "t", "columns": {"type": "struct"}, "kept_as_text": {}}'])
def test_a_damaged_schema_is_one_clear_error(settings, rubbish):
    path = settings.lake / "t.schema.json"
    path.parent.mkdir()
    path.write_text(rubbish)
    with refused(str(path)):
        TableSchema.read(path)


def test_two_topics_of_one_name_are_told_apart(settings):
    TableSchema("a.b", COLUMNS).write(Location.of("a.b", settings).schema)
    with refused("a_b", "topic a.b", "topic a-b"):
        Location.of("a-b", settings)
