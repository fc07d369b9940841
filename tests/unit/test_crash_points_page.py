"""The results in docs/crash-points.md."""

import pytest
from crash_points import page
from crash_points.cases import CASES
from crash_points.enumeration import Tried
from crash_points.page import note, told, what_of
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
    lock, plan, commit = (Point(f"write checkpoints/a-v1-update{of}", 1) for of in (".lock", "/offsets/N", "/commits/N"))
    kept, repeated = "no batch to repeat", "a batch to repeat"
    tried = [Tried(lock, None, []), Tried(plan, kept, []), Tried(plan, repeated, ["2 rows are missing"]), Tried(commit, repeated, [])]
    assert told(tried, 4).splitlines() == [
        "Only a sample, 3 of 4 points were tried; 2 were right.",
        "",
        "* **wrong** before write checkpoints/a-v1-update/offsets/N (1): 2 rows are missing",
        "* no batch to repeat: `offsets/N` 1",
        "* a batch to repeat: `offsets/N` 1, `commits/N` 1",
    ]
    assert told(tried[1:], 3).startswith("All 3 points were tried; 2 were right.")


def test_the_page_has_a_place_for_each_case(tmp_path, monkeypatch):
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    for case in CASES:
        for left in ("nothing", case):
            note(case, [Tried(Point("open of nobody", 1), left, [])], 7)
    for case in CASES:
        section = copy.read_text().split(f"<!-- {case} -->")[1].split("###")[0]
        assert section.strip().split("\n\n") == ["Only a sample, 1 of 7 points were tried; 1 were right.", f"* {case}: `nobody` 1"], section
