"""Drafts of downloads: whole or not there, and none left of a program that was killed."""

import os
import time

import pytest

from infrastructure.storage.downloads import ABANDONED_SECONDS, draft_of


def test_a_draft_becomes_the_file_at_the_end_of_the_block(tmp_path):
    path = tmp_path / "cache" / "a.jar"
    with draft_of(path) as draft:
        draft.write_text("one")
        assert not path.exists()
    assert [(file.name, file.read_text()) for file in path.parent.iterdir()] == [("a.jar", "one")]


def test_after_an_error_nothing_is_left(tmp_path):
    with pytest.raises(UnicodeEncodeError), draft_of(tmp_path / "a.jar") as draft:
        draft.write_text("half \ud800", encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_program_has_left_is_deleted_and_a_draft_that_grows_is_not(tmp_path):
    abandoned, growing = tmp_path / "a.jar.1.draft", tmp_path / "a.jar.2.draft"
    for path in (abandoned, growing):
        path.write_text("half")
    os.utime(abandoned, (0, time.time() - ABANDONED_SECONDS - 1))
    with draft_of(tmp_path / "a.jar") as draft:
        draft.touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jar", "a.jar.2.draft"]
