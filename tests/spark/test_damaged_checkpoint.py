"""A byte of a checkpoint that changes on disk is found, though Spark's own checksums are off: Hadoop's local file system keeps one of each file."""

import pytest
from plain import one_camera
from pyspark.errors import StreamingQueryException
from streaming import Record, at

from contract.settings import Settings
from pipeline.domains import nest
from pipeline.running.failures import diagnosis

CAMERA_STATS = nest.queries(Settings())[0]


@pytest.mark.parametrize("file", ["offsets/2", "commits/3", "state/0/0/2.delta"])
def test_a_changed_byte_is_a_damaged_checkpoint(stream, tmp_path, file):
    counting = stream(CAMERA_STATS)
    counting.run([Record(one_camera("cam-1", at("10:00")))], [Record(one_camera("cam-2", at("10:01")))])
    damaged = counting.checkpoint / file
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StreamingQueryException) as error:
        counting.run([Record(one_camera("cam-3", at("10:02")))])
    settings = Settings(home=tmp_path)
    assert "its checkpoint is damaged" in diagnosis(str(error.value), CAMERA_STATS.checkpoint_name.place(settings), settings).what


def test_a_batch_writes_one_file_of_each_state_and_its_checksum(stream):
    counting = stream(CAMERA_STATS)
    counting.run([Record(one_camera("cam-1", at("10:00")))])
    written = sorted(path.name for path in (counting.checkpoint / "state" / "0" / "0").iterdir() if "1.delta" in path.name)
    assert written == [".1.delta.crc", "1.delta"]
