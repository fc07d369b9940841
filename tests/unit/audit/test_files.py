"""Files as a source of the audit: which records they have, and which of them a query has read."""

import gzip
import inspect
import json
import os
import sys
from pathlib import Path

import pytest

from audit.reading import files
from audit.reading.checkpoints import stretches
from audit.reading.read_range import read_range_of
from audit.reading.records import records_between
from contract.checkpoints.names import CheckpointName
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoreUnavailable, file_at
from pipeline.sources import documents

CONTENTS = [
    b"",
    b"\n",
    b" \r\n\t\n",
    b'{"a":1}',
    b'{"a":1}\n{"b":2}\n',
    b'\n\n {"a":1} \r\n\n{"b":2}',
    b'{\n"a":1\n}',
    b'{\n"a":1\n}\n{"b":2}',
    b"[1,\n2]\n",
    b"rubbish\n{}",
    b'\xef\xbb\xbf{"a":1}',
    b'{"a":"\xff"}\n1',
    b"1\r2\n3",
    b"x" * (files._MOST_BYTES - 1) + b"\n{}",
    b"x" * files._MOST_BYTES + b"\n{}",
    b"x" * files._MOST_BYTES,
    b"x" * (files._MOST_BYTES + 1),
    b"[\n" + b" " * (files._MOST_BYTES - 3) + b"]",
    b"[\n" + b" " * (files._MOST_BYTES - 2) + b"]",
    gzip.compress(b'{"a":1}\n{"b":2}'),
    gzip.compress(b"")[:5],
    gzip.compress(b"1\n2\n" * 1000)[:-9],
    gzip.compress(b"1") + gzip.compress(b"2"),
    gzip.compress(b"1") + b"\0\0",
    gzip.compress(b"1") + b"rubbish",
    gzip.compress(b"1")[:-8] + bytes(8),  # of another checksum
]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_a_file_has_the_lines_that_the_pipeline_reads(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert [tuple(line) for line in files.lines_of(path)] == [tuple(line) for line in documents.lines_of(path)]


@pytest.mark.parametrize("levels", [1_000, 2_000])
def test_how_deep_a_document_may_be_nested_does_not_depend_on_the_program_that_reads_it(levels, tmp_path):
    """The audit has raised Python's recursion limit, and the pipeline has not."""
    path, before, found = tmp_path / "file", sys.getrecursionlimit(), []
    path.write_bytes(b"[\n" * levels + b"]" * levels)
    for limit in (1_000 + len(inspect.stack(0)), 10_000):
        sys.setrecursionlimit(limit)
        try:
            found.append(len(list(files.lines_of(path))))
        finally:
            sys.setrecursionlimit(before)
    assert found == [1 if levels == 1_000 else levels + 1] * 2


def test_a_file_that_cannot_be_opened_is_one_line_with_the_reason(tmp_path):
    (line,) = files.lines_of(tmp_path / "none")
    assert line == tuple(next(iter(documents.lines_of(tmp_path / "none"))))


@pytest.mark.parametrize("lines_of", [files.lines_of, documents.lines_of], ids=["audit", "pipeline"])
def test_an_object_store_that_does_not_answer_is_no_file_that_cannot_be_read(lines_of, store):
    store.client.put_object(Bucket="bucket", Key="a b/%20#.json", Body=b"1\n2")
    path = file_at("STREAMGAUGE_NEST_SOURCE", "s3a://bucket/a b/%20#.json", store.address)
    assert [line.value for line in lines_of(path)] == [b"1", b"2"]
    store.stop()
    with pytest.raises(StoreUnavailable):
        list(lines_of(path))


@pytest.fixture
def run(tmp_path):
    """A query that has read files: listings of each batch; commits up to `committed`."""
    settings = Settings(home=tmp_path)
    place = CheckpointName("nest-camera-stats", 1, "update").place(settings)
    folder = Path(str(place.folder))
    for name in ("sources/0", "offsets", "commits"):
        (folder / name).mkdir(parents=True)

    def write(*listings, committed, watermarks):
        for entry, paths in enumerate(listings):
            found = (
                {"path": path.as_uri(), "timestamp": path.stat().st_mtime_ns // 1_000_000, "batchId": entry} for path in map(Path, paths)
            )
            (folder / "sources" / "0" / str(entry)).write_text("\n".join(["v1", *map(json.dumps, found)]))
        for number, watermark_ms in enumerate(watermarks):
            plan = ["v1", json.dumps({"batchWatermarkMs": watermark_ms}), json.dumps({"logOffset": number})]
            (folder / "offsets" / str(number)).write_text("\n".join(plan))
        for number in range(committed + 1):
            (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        return read_range_of(place, dict, settings)

    return write


def offsets_in(read_range, settings, ends):
    tables = records_between(settings, read_range.starts, ends, read_range.files)
    return sorted((Path(row["topic"]).name, row["offset"]) for table in tables for row in table.to_pylist())


def test_the_files_of_committed_batches_and_of_the_one_under_way_are_read_by_line(run, tmp_path):
    one, two, three = (tmp_path / name for name in ("a b.json", "2.json", "3.json"))
    for path in (one, two, three):
        path.write_text("{}\n\n{}")
    read_range = run([one], [two], [three], committed=0, watermarks=[0, 60_000])
    assert (read_range.committed, read_range.planned, read_range.records) == (0, 1, 2)
    assert offsets_in(read_range, Settings(), read_range.committed_ends) == [("a b.json", 1), ("a b.json", 3)]
    assert offsets_in(read_range, Settings(), read_range.ends) == [("2.json", 1), ("2.json", 3), ("a b.json", 1), ("a b.json", 3)]
    found = {
        Path(one.topic).name: (one.late_until_ms, one.is_ahead)
        for one in stretches(read_range.first_offsets, read_range.batches, read_range.committed)
    }
    assert found == {"a b.json": (0, False), "2.json": (0, True)}
    assert read_range.newest_lost_ms("1 minute", "0 seconds") == 0


def test_a_file_that_is_gone_is_a_loss_up_to_the_watermark_after_it_and_one_that_has_changed_is_named(run, tmp_path):
    one, two, three = (tmp_path / name for name in ("1.json", "2.json", "3.json"))
    for path in (one, two, three):
        path.write_text("{}")
    read_range = run([one], [two], [three], committed=2, watermarks=[0, 60_000, 120_000])
    one.unlink()
    os.utime(two, ns=(0, 0))
    read_range = read_range_of(read_range.place, dict, Settings(home=tmp_path))
    assert read_range.records == 2
    assert read_range.newest_lost_ms("1 minute", "10 seconds") == 60_000 + 70_000
    assert read_range.notes == [
        f"1 files that were read are no longer there: what came of them cannot be checked ({one})",
        f"1 files that were read are changed since: the query has read what they held before ({two})",
    ]


class TestFound:
    @pytest.fixture
    def place(self, tmp_path):
        place = CheckpointName("nest-camera-stats", 1, "update").place(Settings(home=tmp_path))
        Path(str(place.folder / "sources" / "0")).mkdir(parents=True)
        return place

    def entry(self, path, number):
        return json.dumps({"path": f"file://{path}", "timestamp": 17, "batchId": number})

    def log(self, place, name, *entries):
        (place.folder / "sources" / "0" / name).write_text("\n".join(["v1", *entries]))

    def test_before_the_first_batch_there_is_none(self, place):
        assert list(files.source_files(place, Settings())) == []

    def test_those_of_a_summary_and_of_what_came_after_it_each_once(self, place):
        self.log(place, "8", self.entry("/in/old.json", 8))
        self.log(place, "9.compact", self.entry("/in/old.json", 8), self.entry("/in/a%20b.json", 9))
        self.log(place, "10", self.entry("/in/new.json", 10))
        self.log(place, ".10.crc", "no entry")
        found = [(str(file.path), file.modified_ms, file.entry) for file in files.source_files(place, Settings())]
        assert found == [("/in/old.json", 17, 8), ("/in/a b.json", 17, 9), ("/in/new.json", 17, 10)]

    def test_a_damaged_log_is_named(self, place):
        self.log(place, "0", '{"path":')
        with pytest.raises(StreamgaugeError, match="sources/0"):
            files.source_files(place, Settings())
