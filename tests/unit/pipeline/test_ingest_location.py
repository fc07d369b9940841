"""Where the table of a topic is, and the schema beside it."""

import json
from dataclasses import replace

import pytest
from messages import refused
from pyspark.sql import types as T  # noqa: N812

from infrastructure.settings import Settings
from pipeline.ingest.location import Location, TableSchema, locations, table_name
from pipeline.ingest.upsert import ingests
from pipeline.lake.names import check_names_of

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


def test_a_table_has_a_row_per_record_if_it_was_created_so(settings):
    created = Location.of("clicks", settings, append=True)
    TableSchema("clicks", COLUMNS, append=True).write(created.schema)
    assert created.append
    assert [Location.of("clicks", settings), *locations(settings)] == [created, created]
    kept = json.loads(created.schema.read_text())
    del kept["append"]  # as before there were such tables
    created.schema.write_text(json.dumps(kept))
    assert not Location.of("clicks", settings).append
    with refused("table clicks has a row per key", "`streamgauge reset ingest-clicks`", "`streamgauge ingest clicks --append`"):
        Location.of("clicks", settings, append=True)


@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "{}",
        "[]",
        '{"topic": "t", "columns": {"type": "struct"}, "kept_as_text": {}}',
        '{"topic": "t", "columns": {"type": "struct", "fields": ["a"]}, "kept_as_text": {}, "ignored": []}',
        '{"topic": "t", "columns": {"type": "struct", "fields": [{"name": 1, "type": "long", "nullable": true}]}, "kept_as_text": {}, "ignored": []}',
    ],
)
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


def checked(topic, settings, **options):
    check_names_of(Location.of(topic, settings, **options), settings)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("a.b", "a-b", "a_b"),
        ("Orders", "orders", "ingest-orders"),
        ("a-b", "A_B", "a_b"),
        ("orders", "orders-dead-letters", "ingest-orders-dead-letters"),
        ("orders-dead-letters", "orders", "ingest-orders-dead-letters"),
    ],
)
def test_of_two_topics_that_would_share_a_name_the_second_is_refused(settings, first, second, shared):
    checked(first, settings)
    TableSchema(first, COLUMNS).write(Location.of(first, settings).schema)
    checked(first, settings)
    with refused(f"topic {first}", f"topic {second} ", f" {shared} ", "another STREAMGAUGE_HOME"):
        checked(second, settings)


def test_a_table_for_debugging_does_not_take_the_name_of_another_topic(settings):
    TableSchema("hold-debug", COLUMNS).write(Location.of("hold-debug", settings).schema)
    checked("hold", settings)
    with refused("topic hold-debug", "hold_debug"):
        check_names_of(Location.by_convention("hold", settings, debug=True), settings)


@pytest.mark.parametrize("topic", ["_deletions", "-deletions", "_orders", ".orders", "__consumer_offsets"])
def test_names_that_are_internal_to_the_lake_are_refused(settings, topic):
    with refused(f"topic {topic} ", "begin with _"):
        checked(topic, settings)


def test_the_topic_of_its_own_dead_letters_is_refused(settings):
    with refused("topic dead-letters takes what `ingest` cannot use"):
        checked("dead-letters", settings)


def test_a_name_too_long_for_files_is_refused(settings):
    settings.lake.mkdir(parents=True)  # only where the folder is there does the system refuse the name
    checked("n" * 200, settings)
    with refused("249 characters", "200"):
        checked("n" * 249, settings)


@pytest.mark.parametrize(
    "topic", ["nest.cameras", "taxi-trips_distinct", "taxi_trips_delta", "LIVE.nest-camera-stats", "derived-sums", "mine"]
)
def test_names_of_other_tables_are_refused_also_before_these_exist(settings, topic):
    (settings.lake / "mine" / "_delta_log").mkdir(parents=True)
    with refused(f"topic {topic} would be {table_name(topic, debug=False)}", "which is the name of"):
        check_names_of(replace(Location.of(topic, settings), table=settings.lake / "elsewhere" / table_name(topic, debug=False)), settings)


@pytest.mark.parametrize("topic", ["2024-orders", "select", "table", "nest-dead-letters-x", "streaming-metrics", "nyc-taxi"])
def test_other_names_are_taken(settings, topic):
    checked(topic, settings)
