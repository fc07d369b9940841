"""The tables of docs/crash-points.md."""

import pytest
from crash_points import page
from crash_points.cases import CASES
from crash_points.enumeration import Tried
from crash_points.page import note, table, what_of
from crash_points.watched import Point


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ("send Produce to Kafka", "request `Produce`"),
        ("open checkpoints/nest-archive-v1-append.lock", "`.lock`"),
        ("write checkpoints/.nest-archive-v1-append.journal.*.partial", "`.journal`"),
        ("open checkpoints/nest-archive-v1-append/offsets/..N.*.tmp.crc", "`offsets/N`"),
        ("rename checkpoints/nest-archive-v1-append/offsets/.N.*.tmp to checkpoints/nest-archive-v1-append/offsets/N", "`offsets/N`"),
        ("write lake/results/alerts/.rows.parquet.*.partial", "`lake/results/alerts/rows.parquet`"),
    ],
)
def test_an_operation_is_on_the_file_that_it_makes(operation, what):
    assert what_of(operation) == what


def test_a_point_that_was_not_reached_counts_neither_as_right_nor_as_wrong():
    lock, plan = Point("open checkpoints/a-v1-update.lock", 1), Point("write checkpoints/a-v1-update/offsets/N", 1)
    tried = [Tried(lock, None, []), Tried(plan, "no batch to repeat", []), Tried(plan, "a batch to repeat", ["2 rows are missing"])]
    assert table(tried).splitlines()[2:] == ["| `offsets/N` | 1: no batch to repeat; 1: a batch to repeat | 1 of 2 |"]


def test_the_page_has_a_place_for_each_case(tmp_path, monkeypatch):
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    for case in CASES:
        note(case, [Tried(Point("open of nobody", 1), case, [])], 7)
    assert copy.read_text().count("Only a sample, 1 of the 7 points of a run were tried.") == len(CASES)
    note("export", [Tried(Point("open of nobody", 1), "nothing", [])], 1)
    assert copy.read_text().count("All the 1 points of a run were tried.") == 1
