"""Folders on a disk and in an object store, a real server that speaks S3's protocol: both are to answer alike."""

import os
import time
from pathlib import Path

import pytest
from object_store import CREDENTIALS, ObjectStore

from infrastructure.process.ports import free_ports
from infrastructure.storage.paths import StoreUnavailable, folders_in, names_in, remote_folder, text_of, write_new, write_whole
from infrastructure.storage.removal import bytes_on_disk


@pytest.fixture(params=["disk", "object store"])
def folder(request, tmp_path):
    if request.param == "disk":
        return tmp_path
    return remote_folder("CHECKPOINT_URI", "s3a://bucket/folder", request.getfixturevalue("store").address)


def test_a_file_is_there_once_it_is_written_and_not_before(folder):
    assert (names_in(folder), text_of(folder / "one")) == ([], None)
    write_whole(folder / "one", "1")
    write_whole(folder / "below" / "two", "2")
    write_whole(folder / "one", "one")
    assert names_in(folder) == ["below", "one"]
    assert names_in(folder / "below") == ["two"]
    assert names_in(folder / "one") == [], "a file holds no names"
    assert (text_of(folder / "one"), text_of(folder / "below" / "two")) == ("one", "2")


def test_who_writes_one_file_at_once_or_reads_it_meanwhile_has_a_whole_one(tmp_path, monkeypatch):
    file, replace = tmp_path / "rows.parquet", Path.replace

    def meanwhile(self, target):
        monkeypatch.setattr(Path, "replace", replace)
        write_whole(file, "second")
        assert [one.name for one in tmp_path.iterdir() if one.name[0] not in "._"] == [file.name], "Arrow would read the other, too"
        assert self.read_text() == "first"
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", meanwhile)
    write_whole(file, "first")
    assert (names_in(tmp_path), file.read_text()) == ([file.name], "first")


def test_what_killed_writers_have_left_is_deleted_an_hour_later(tmp_path):
    for name, age_seconds in {".rows.0a1b2c3d.partial": 3700, ".rows.4a1b2c3d.partial": 3500, ".others.0a1b2c3d.partial": 3700}.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age_seconds,) * 2)
    write_whole(tmp_path / "rows", "new")
    assert names_in(tmp_path) == [".others.0a1b2c3d.partial", ".rows.4a1b2c3d.partial", "rows"]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", "text")
    assert names_in(tmp_path) == ["folder"]


def test_a_new_file_is_written_by_the_first_alone(folder):
    assert write_new(folder / "owner", "first")
    assert not write_new(folder / "owner", "second")
    assert text_of(folder / "owner") == "first"


def test_a_folder_that_spark_has_made_there_is_not_in_itself(store):
    folder = remote_folder("CHECKPOINT_URI", "s3a://bucket/checkpoints", store.address)
    for key in ("bucket/checkpoints/", "bucket/checkpoints/offsets/", "bucket/checkpoints/offsets/0"):
        folder.fs.pipe_file(key, b"")
    assert (names_in(folder), names_in(folder / "offsets")) == (["offsets"], ["0"])


def test_a_store_that_is_away_is_said_to_be_whatever_it_is_asked(monkeypatch):
    store = ObjectStore(free_ports(1)[0])
    store.start()
    for name, text in {**CREDENTIALS, "AWS_MAX_ATTEMPTS": "1"}.items():  # or the client would try for ten seconds each time
        monkeypatch.setenv(name, text)
    folder = remote_folder("CHECKPOINT_URI", "s3a://bucket/away", store.address)
    store.stop()
    for ask in (names_in, folders_in, text_of, bytes_on_disk, lambda folder: write_new(folder, "text")):
        with pytest.raises(StoreUnavailable, match=r"^s3a://bucket/away .*EndpointConnectionError"):
            ask(folder)
