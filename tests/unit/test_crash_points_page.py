"""The results in docs/crash-points.md."""

import re

import pytest
from crash_points import page
from crash_points.cases import CASES
from crash_points.enumeration import Tried
from crash_points.page import note, told
from crash_points.watched import End, Point


def test_a_point_that_was_not_reached_counts_neither_as_right_nor_as_wrong():
    lock, plan, commit = (Point(f"write checkpoints/a-v1-update{of}", 1) for of in (".lock", "/offsets/N", "/commits/N"))
    tried = [Tried(lock, None, []), Tried(plan, "a batch to repeat", ["2 rows are missing"]), Tried(commit, "a batch to repeat", [])]
    assert told(tried, 4) == "4 | 2 | 1; **wrong** before write checkpoints/a-v1-update/offsets/N (1): 2 rows are missing |"
    assert told(tried[2:], 1) == "1 | 1 | 1 |"


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Of the page, which the results go into."""
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    return copy


def test_a_program_without_torn_writes_has_none_that_were_not_tried(copy):
    before, row = Point("open of nobody", 1), "| `notify`: what it has told <!-- notify --> | 7 | 1 | 1 | 0 | 0 | 0 |"
    copy.write_text(re.sub(r"(<!-- notify -->(?:[^|]*\|){7}).*", r"\1", copy.read_text()))  # its power failures are another test's
    note("notify", [Tried(before, "nothing", [])], [before] * 7)
    assert row in copy.read_text().splitlines()
    note("notify", [], [])  # only torn writes were wanted
    assert row in copy.read_text().splitlines()


def test_the_page_has_a_row_for_each_case(copy):
    for case in CASES:
        before, torn, power = (Point("write of nobody", 1, end) for end in End)
        note(case, [Tried(before, "nothing", [])], [before] * 7 + [torn] * 2)
        note(case, [Tried(torn, "nothing", ["a row"])], [torn] * 2)
        note(case, [Tried(power, "a batch to repeat", [], after_reset=True), Tried(power, "nothing", [])], [power] * 7)
    rows = copy.read_text().splitlines()
    assert {case: [row.partition("--> ")[2] for row in rows if f"<!-- {case} -->" in row] for case in CASES} == {
        case: ["| 7 | 1 | 1 | 2 | 1 | 0; **wrong** in write of nobody (1): a row | 7 | 2 | 2 (1) |"] for case in CASES
    }
