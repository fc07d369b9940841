"""The documents of a file, and which files a checkpoint says were taken."""

import gzip
import json
import os

import pytest
from messages import refused

from contract.checkpoints.contents import FILES, Checkpoint
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.sources.documents import MAX_DOCUMENT_BYTES, Line, lines_of
from pipeline.sources.files import Files, path_of


@pytest.fixture
def landed(tmp_path):
    def land(content, name="landed.json"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return land


class TestLines:
    def test_a_document_a_line_with_the_line_s_number(self, landed):
        assert list(lines_of(landed(b'{"a":1}\n\n  \r\n{"a":2}'))) == [Line(1, b'{"a":1}'), Line(4, b'{"a":2}')]

    def test_gzipped_by_its_content_and_not_by_its_name(self, landed):
        assert list(lines_of(landed(gzip.compress(b'{"a":1}\n{"a":2}\n')))) == [Line(1, b'{"a":1}'), Line(2, b'{"a":2}')]

    def test_one_document_over_many_lines_is_one_document(self, landed):
        document = json.dumps({"devices": {"cameras": {}}}, indent=2).encode()
        assert list(lines_of(landed(document))) == [Line(1, document)]

    def test_a_first_line_that_is_no_json_does_not_hide_the_others(self, landed):
        assert list(lines_of(landed(b'{"a":\n{"a":2}\n'))) == [Line(1, b'{"a":'), Line(2, b'{"a":2}')]

    def test_a_gzip_that_was_cut_off_gives_no_document_and_says_why(self, landed):
        (line,) = lines_of(landed(gzip.compress(b'{"a":1}\n' * 1000)[:-9]))
        assert (line.number, line.value) == (0, b"")
        assert "Compressed file ended" in line.problem

    def test_a_damaged_gzip_gives_no_document_and_says_why(self, landed):
        content = bytearray(gzip.compress(json.dumps(list(range(5000))).encode()))
        content[len(content) // 2] ^= 0xFF
        (line,) = lines_of(landed(bytes(content)))
        assert (line.number, line.value) == (0, b"")
        assert line.problem

    def test_a_file_that_is_gone_and_one_that_is_a_folder_say_so(self, tmp_path):
        ((gone,), (folder,)) = lines_of(tmp_path / "gone.json"), lines_of(tmp_path)
        assert gone.problem
        assert folder.problem.endswith("Is a directory")

    def test_a_line_that_is_too_long_for_a_dead_letter_is_named_and_its_neighbours_are_read(self, landed):
        first, long, last = lines_of(landed(b'{"a":1}\n' + b"x" * (MAX_DOCUMENT_BYTES + 1) + b'\n{"a":3}\n'))
        assert (first, last) == (Line(1, b'{"a":1}'), Line(3, b'{"a":3}'))
        assert (long.number, "5 MiB" in long.problem) == (2, True)
        assert len(long.value) == 1024

    def test_the_largest_line_that_passes_passes(self, landed):
        largest = b'"' + b"x" * (MAX_DOCUMENT_BYTES - 2) + b'"'
        assert list(lines_of(landed(largest))) == [Line(1, largest)]

    def test_blank_lines_alone_are_no_document_and_no_bytes_are_nothing(self, landed):
        (blank,) = lines_of(landed(b"\n \n"))
        assert (blank.value, bool(blank.problem)) == (b"", True)
        assert list(lines_of(landed(b""))) == []


def test_a_folder_that_is_a_link_is_the_folder_it_links_to(tmp_path):
    (tmp_path / "landing").mkdir()
    (tmp_path / "link").symlink_to("landing")
    assert Files.of(f"files:{tmp_path}/link").folder == str(tmp_path.resolve() / "landing")


@pytest.mark.parametrize("link", ["landing/2026/link", "landing [1]/link", "other*/link", "other*", "other**/link"])
def test_a_link_to_a_folder_that_spark_would_list_is_refused(tmp_path, monkeypatch, link):
    """Spark's listing of it ended each query for good. A link to a file, a hidden one and one beside the folder are no harm."""
    monkeypatch.setattr("pipeline.sources.files.source_partitions", lambda *_: [])
    link_path, elsewhere, file = tmp_path / link.replace("*", "1"), tmp_path / "elsewhere", tmp_path / "a.json"
    link_path.parent.mkdir(parents=True, exist_ok=True)
    elsewhere.mkdir()
    file.write_text("{}")
    (link_path.parent / "a.json.link").symlink_to(file)
    (link_path.parent / ".hidden").symlink_to(elsewhere)
    (tmp_path / "beside").symlink_to(elsewhere)
    source = Files.of(f"files:{tmp_path}/{link.partition('/')[0]}")
    source.partitions(Settings())
    link_path.symlink_to(elsewhere)
    with refused(f"{link_path} is a link to a folder", "put that folder in its place", "STREAMGAUGE_NEST_SOURCE"):
        source.partitions(Settings())


def test_a_link_whose_name_is_not_utf_8_is_refused_with_a_message_that_can_be_sent(tmp_path, monkeypatch):
    """No alert on it could be made, and that error ended all other queries."""
    monkeypatch.setattr("pipeline.sources.files.source_partitions", lambda *_: [])
    (tmp_path / os.fsdecode(b"caf\xe9")).symlink_to(tmp_path)
    with pytest.raises(StreamgaugeError) as refusal:
        Files.of(f"files:{tmp_path}").partitions(Settings())
    assert str(refusal.value).encode().startswith(bytes(tmp_path / "caf? is a link"))


@pytest.mark.parametrize("uri", ["file:/a b/c%20.json", "file:///a b/c%20.json"])
def test_a_path_of_binary_file_is_not_percent_encoded(uri):
    assert path_of(uri) == "/a b/c%20.json"


def test_a_batch_of_files_ends_behind_its_last_entry(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":5}\n{"logOffset":6}')
    assert Checkpoint(tmp_path).batch(3).ends == {FILES: 7}
