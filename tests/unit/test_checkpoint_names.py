"""Names of checkpoints, of queries whose names have dots too."""

import pytest

from contract.checkpoints.names import CheckpointName, checkpoints, others_of_query, remains_of
from contract.settings import Settings


@pytest.mark.parametrize("query", ["nest-archive", "ingest-orders.v1", "ingest-orders.v1-dead-letters"])
def test_a_name_says_what_it_is_made_of_and_so_do_the_files_beside_it(tmp_path, query):
    name = CheckpointName(query, 2, "append")
    place = name.place(Settings(home=tmp_path))
    assert CheckpointName.of(place.folder.name) == name
    for file in (place.note(".lock"), place.beside(".topics")):
        assert file.name == f"{query}-v2-append{file.suffix}"
        assert CheckpointName.of(file.name) == name


def test_queries_that_begin_alike_are_told_apart(tmp_path):
    settings = Settings(home=tmp_path)
    one, other, older = (
        CheckpointName(*of).place(settings)
        for of in (("ingest-orders.v1", 1, "append"), ("ingest-orders.v2", 1, "append"), ("ingest-orders.v1", 0, "append"))
    )
    for place in (one, other, older):
        place.folder.mkdir(parents=True)
        place.note(".lock").touch()
    assert checkpoints(settings) == [older, one, other]
    assert remains_of("ingest-orders.v1", settings) == [older.folder, older.note(".lock"), one.folder, one.note(".lock")]
    assert others_of_query(one.name, settings) == [older]
