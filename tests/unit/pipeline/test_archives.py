"""How far an archive has been written, by Spark's metadata log."""

from dataclasses import replace

import pytest

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.sinks.archives import ParquetArchive

ARCHIVE = ParquetArchive("cameras", "date")
FILE = '{"path":"part-0"}'


@pytest.fixture
def settings(tmp_path):
    return replace(Settings(), lake_uri="", home=tmp_path)


def last_batch(settings, **entries):
    log = ARCHIVE.folder(settings) / "_spark_metadata"
    log.mkdir(parents=True)
    for name, text in entries.items():
        (log / name).write_text(text)
    return ARCHIVE.last_batch(None, settings, None)


def test_the_last_entry_counts_also_if_it_has_no_files_or_is_compact(settings, tmp_path):
    assert ARCHIVE.last_batch(None, settings, None) == -1
    assert last_batch(settings, **{"8": "cleaned up later", "9.compact": f"v1\n{FILE}", "10": "v1", ".11.tmp": ""}) == 10
    assert last_batch(replace(settings, home=tmp_path / "other"), **{"9.compact": f"v1\n{FILE}\n{FILE}"}) == 9


@pytest.mark.parametrize(
    ("entries", "damaged"),
    [
        ({"9.compact": f"v1\n{FILE}", "11": "v1"}, "10"),
        ({"0": "v1", "2": "v1"}, "1"),
        ({"9.compact": "", "10": "v1"}, "9.compact"),
        ({"9.compact": f"v1\n{FILE}\n{FILE[:7]}", "10": "v1", "11": "v1"}, "9.compact"),
        ({"10": f"v1\n{FILE[:7]}", "11": "v1"}, "10"),
        ({"10": "v"}, "10"),
    ],
    ids=["missing", "missing of few", "empty", "cut", "cut of few", "cut in its first line"],
)
def test_an_entry_that_is_missing_empty_or_cut_is_named(settings, entries, damaged):
    with pytest.raises(StreamgaugeError, match=rf"cameras/_spark_metadata/{damaged} is damaged .*`streamgauge reset`"):
        last_batch(settings, **entries)
