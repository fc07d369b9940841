"""The partitions of each source of a query in real-time mode: what a source has read stays with it."""

import json

import pytest

from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CheckpointName
from infrastructure.settings import Settings
from pipeline.sources.watermarks import MAX_BRANCHES, shares


def of(*numbers):
    return [("nest-logs", number) for number in numbers]


@pytest.mark.parametrize(
    ("partitions", "read", "expected"),
    [
        (of(0, 1, 2), [], [of(0), of(1), of(2)]),
        (of(0, 1, 2), [of(2), of(0), of(1)], [of(2), of(0), of(1)]),
        (of(0, 1, 2, 3), [of(0, 1), of(2)], [of(0, 1), of(2, 3)]),
        (of(0, 1), [of(0), []], [of(0), of(1)]),
    ],
    ids=["first run", "as before", "an added partition", "a source that has read nothing"],
)
def test_each_partition_has_one_source(partitions, read, expected):
    assert shares(partitions, read) == expected


def test_more_partitions_than_sources_share_them():
    found = shares(of(*range(40)), [])
    assert len(found) == MAX_BRANCHES
    assert sorted(which for share in found for which in share) == of(*range(40))
    assert {len(share) for share in found} == {1, 2}


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of two sources, of partitions 1 and 0, after its first batch."""
    folder = CheckpointName("nest-camera-stats", 1, "real-time").folder(Settings(home=tmp_path))
    offsets = [json.dumps({"nest-logs": {str(number): 10 + number}}) for number in (1, 0)]
    for path, lines in {"offsets/0": ['{"batchWatermarkMs":0}', *offsets], "sources/0/0": offsets[:1], "sources/1/0": offsets[1:]}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(["v1", *lines]))
    return Checkpoint(folder)


def test_a_checkpoint_tells_the_partitions_of_each_source_and_where_each_began(checkpoint):
    assert checkpoint.partitions == [of(1), of(0)]
    assert checkpoint.first_offsets() == {("nest-logs", 1): 11, ("nest-logs", 0): 10}
