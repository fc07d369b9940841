"""What a start finds of a damaged checkpoint. Spark's own checksums are off: Hadoop's local file system keeps one of each file."""

import shutil

import pytest
from plain import one_camera
from pyspark.errors import StreamingQueryException
from streaming import Record, at

from contract.checkpoints.contents import Checkpoint
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.domains import nest
from pipeline.monitoring.failures import diagnosis

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
    assert "its checkpoint is damaged" in diagnosis(str(error.value), CAMERA_STATS.checkpoint_name.place(settings), settings).cause


def without(path):
    path.unlink()


def emptied(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def test_a_missing_empty_or_cut_file_is_named_before_the_start(stream, tmp_path):
    counting = stream(CAMERA_STATS)
    counting.run([Record(one_camera("cam-1", at("10:00")))], [Record(one_camera("cam-2", at("10:01")))])
    Checkpoint(counting.checkpoint).check()
    damages = [(file, harm) for file in ("metadata", "offsets/3", "offsets/2", "commits/3") for harm in (without, emptied, cut)]
    damages += [("state/0/0/2.delta", emptied), ("sources/0/3", without)]
    for number, (file, harm) in enumerate(damages):
        damaged = tmp_path / f"damaged-{number}"
        shutil.copytree(counting.checkpoint, damaged)
        harm(damaged / file)
        if (file, harm) == ("commits/3", without):
            Checkpoint(damaged).check()  # as after a kill: the batch runs again
            continue
        with pytest.raises(
            StreamgaugeError, match=rf"^{damaged / file} is damaged \(.*\); restore a copy of the whole .*`streamgauge reset`"
        ):
            Checkpoint(damaged).check()


def test_a_missing_file_of_the_state_is_named(stream, tmp_path):
    counting = stream(CAMERA_STATS)
    counting.run([Record(one_camera("cam-1", at("10:00")))], [Record(one_camera("cam-2", at("10:01")))])
    (counting.checkpoint / "state/0/0/2.delta").unlink()
    with pytest.raises(StreamingQueryException) as error:
        counting.run([Record(one_camera("cam-3", at("10:02")))])
    settings = Settings(home=tmp_path)
    what = diagnosis(str(error.value), CAMERA_STATS.checkpoint_name.place(settings), settings).cause
    assert "its checkpoint is damaged" in what
    assert "state/0/0/2.delta" in what
    assert "(`streamgauge reset nest-camera-stats`)" in what


def test_a_batch_writes_one_file_of_each_state_and_its_checksum(stream):
    counting = stream(CAMERA_STATS)
    counting.run([Record(one_camera("cam-1", at("10:00")))])
    written = sorted(path.name for path in (counting.checkpoint / "state" / "0" / "0").iterdir() if "1.delta" in path.name)
    assert written == [".1.delta.crc", "1.delta"]
