"""Names of checkpoints, of queries whose names have dots too."""

import pytest

from streamgauge.checkpoint_names import CheckpointName, beside, checkpoints, files_of, others_of_query
from streamgauge.settings import Settings


@pytest.mark.parametrize("query", ["nest-archive", "ingest-orders.v1", "ingest-orders.v1-dead-letters"])
def test_a_name_says_what_it_is_made_of_and_so_do_the_files_beside_it(tmp_path, query):
    name = CheckpointName(query, 2, "append")
    folder = name.folder(Settings(home=tmp_path))
    assert CheckpointName.of(folder) == name
    lock = beside(folder, ".lock")
    assert lock.name == f"{query}-v2-append.lock"
    assert CheckpointName.of(lock) == name


def test_queries_that_begin_alike_are_told_apart(tmp_path):
    settings = Settings(home=tmp_path)
    one, other, older = (
        CheckpointName(*of).folder(settings)
        for of in (("ingest-orders.v1", 1, "append"), ("ingest-orders.v2", 1, "append"), ("ingest-orders.v1", 0, "append"))
    )
    for folder in (one, other, older):
        folder.mkdir(parents=True)
        beside(folder, ".lock").touch()
    assert checkpoints(settings) == sorted([one, other, older])
    assert files_of("ingest-orders.v1", settings) == sorted([one, beside(one, ".lock"), older, beside(older, ".lock")])
    assert others_of_query(one) == [older]
