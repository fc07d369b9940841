"""Which queries run without being named."""

from contract.settings import Settings
from pipeline.catalog import chosen, queries, run_here

ON_REQUEST = "taxi-zone-sessions"


def test_with_a_database_each_result_topic_has_a_query_for_its_table(tmp_path):
    without, settings = Settings(home=tmp_path), Settings(home=tmp_path, database_url="sqlite:////results.db")
    added = names(queries(settings)) - names(queries(without))
    assert {"nest-camera-stats-database", "wikimedia-edit-stats-database"} <= added
    assert not {f"{ON_REQUEST}-database", "nest-archive-database"} & added
    assert names(chosen(["nest-camera-stats-database"], without)) == {"nest-camera-stats-database"}


def names(found):
    return {query.name for query in found}


def test_a_query_on_request_runs_by_name_only_and_belongs_to_this_place_once_it_has_run(tmp_path):
    settings = Settings(home=tmp_path)
    by_default = names(queries(settings))
    assert ON_REQUEST not in by_default
    assert names(chosen([], settings)) == by_default
    assert names(chosen([ON_REQUEST], settings)) == {ON_REQUEST, "taxi-dead-letters"}
    assert names(run_here(settings)) == by_default
    (one,) = (query for query in chosen([ON_REQUEST], settings) if query.on_request)
    one.checkpoint_name.folder(settings).mkdir(parents=True)
    assert names(run_here(settings)) == {*by_default, ON_REQUEST}
