"""Which queries run without being named."""

from infrastructure.settings import Settings
from pipeline.catalog import all_queries, chosen, is_new_version, queries

ON_REQUEST = "taxi-zone-sessions"


def test_with_a_database_each_result_topic_has_a_query_for_its_table(tmp_path):
    without, settings = Settings(home=tmp_path), Settings(home=tmp_path, database_url="sqlite:////results.db")
    added = names(queries(settings)) - names(queries(without))
    assert {"nest-camera-stats-database", "wikimedia-edit-stats-database"} <= added
    assert not {f"{ON_REQUEST}-database", "nest-archive-database"} & added
    assert names(chosen(["nest-camera-stats-database"], without)) == {"nest-camera-stats-database"}


def test_each_query_of_a_compacted_topic_has_one_beside_it_into_topics_of_its_own(tmp_path):
    settings = Settings(home=tmp_path)
    current = {query.name: query for query in all_queries(settings) if not is_new_version(query)}
    versions = {query.name: query for query in all_queries(settings) if is_new_version(query)}
    assert {"nest-camera-stats.v1", "nest-camera-status.v2"} <= set(versions)
    for name, query in versions.items():
        ending = f".v{query.version}"
        readers_see = current[name.removesuffix(ending)].sink
        assert query.sink.current == readers_see
        assert [topic.name for topic in query.sink.topics] == [f"{topic.name}{ending}" for topic in readers_see.topics]
    assert not set(versions) & names(queries(settings))
    assert names(chosen(["nest-camera-stats.v1"], settings)) == {"nest-camera-stats.v1"}, "the dead letters are the current one's"


def names(found):
    return {query.name for query in found}


def test_a_query_on_request_runs_by_name_only(tmp_path):
    settings = Settings(home=tmp_path)
    by_default = names(queries(settings))
    assert ON_REQUEST not in by_default
    assert names(chosen([], settings)) == by_default
    assert names(chosen([ON_REQUEST], settings)) == {ON_REQUEST, "taxi-dead-letters"}


def test_a_damaged_schema_of_an_ingested_table_leaves_the_queries_of_the_domains(tmp_path):
    settings = Settings(home=tmp_path)
    settings.lake.mkdir(parents=True)
    (settings.lake / "orders.schema.json").write_text("{")
    assert names(chosen([], settings)) == names(queries(settings))


def test_in_real_time_mode_run_the_queries_that_count_into_a_compacted_topic_and_the_dead_letters(tmp_path):
    known_here = all_queries(Settings(home=tmp_path))
    assert {query.name for query in known_here if query.real_time and not is_new_version(query)} == {
        "nest-camera-stats",
        "nest-crowds",
        "nest-dead-letters",
        "nest-temperatures",
        "taxi-borough-stats",
        "taxi-dead-letters",
        "taxi-flows",
        "wikimedia-dead-letters",
        "wikimedia-edit-stats",
        "wikimedia-wiki-stats",
    }
    assert {query.mode for query in known_here if query.real_time} == {"update"}, "Spark has no other mode there"
    (nest,) = (query for query in known_here if query.name == "nest-camera-stats")
    assert str(nest.checkpoint_name) == "nest-camera-stats-v1-real-time"


def test_without_it_all_run_in_micro_batches(tmp_path):
    assert not any(query.real_time for query in all_queries(Settings(home=tmp_path, real_time="off")))
