"""What a removal takes, and what it never follows."""

import os

import pytest
from messages import refused

from infrastructure.storage.removal import bytes_on_disk, confirm, remove


@pytest.fixture
def outside(tmp_path):
    """A folder that no removal may reach, with a file in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path, outside):
    link = tmp_path / "link"
    link.symlink_to(outside)
    remove(link)
    assert not link.is_symlink()
    assert (outside / "precious").exists()


def test_a_link_inside_a_folder_is_not_followed(tmp_path, outside):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "to-file").symlink_to(outside / "precious")
    remove(folder)
    assert not folder.exists()
    assert (outside / "precious").read_text() == "precious"


def test_files_folders_and_nothing(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("")
    (folder / "deep").mkdir(parents=True)
    for path in (file, folder, tmp_path / "nothing"):
        remove(path)
        assert not path.exists()


def test_what_another_program_deletes_meanwhile_keeps_nothing_else(tmp_path, monkeypatch):
    for name in ("1", "2", "3"):
        (tmp_path / "folder" / name).mkdir(parents=True)
        (tmp_path / "folder" / name / "file").write_text("")
    others, unlink = iter([1]), os.unlink

    def delete(path, **more):
        for _ in others:
            unlink(path, **more)
        unlink(path, **more)

    monkeypatch.setattr(os, "unlink", delete)
    remove(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_the_size_is_what_lies_on_the_disk_without_holes_and_without_what_links_lead_to(tmp_path, outside):
    (outside / "precious").write_bytes(b"x" * 1_000_000)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    with (folder / "index").open("wb") as file:
        file.truncate(10_000_000)
    (folder / "data").write_bytes(b"x" * 100_000)
    assert 100_000 <= bytes_on_disk(folder) < 200_000
    assert bytes_on_disk(tmp_path / "nothing") == 0


def test_without_a_terminal_nobody_is_asked():
    with refused("--yes"):
        confirm("delete?", yes=False)
    confirm("delete?", yes=True)
