"""What a user reads of verdicts, and a program."""

import io
import json
from decimal import Decimal

from rich.console import Console

from audit.verdicts.comparison import Difference, Unreadable
from audit.verdicts.show import as_json, row_text, show
from audit.verdicts.verdict import Beside, Lateness, RowCounts, Verdict, merged

LATE = Lateness(rows=9, events=8, late_rows=2, late_events=1)
DIFFERENT = Difference(
    "different",
    "94301",
    {"zip_code": "94301", "count": 3, "mean": 3.2},
    {"zip_code": "94301", "count": Decimal(4), "mean": Decimal("3.2")},
)
RIGHT = Verdict("stats", "topic stats", 3, 1200, RowCounts(equal=10, expired=2), LATE)
WRONG = Verdict("flows", "topic flows", 3, 1200, RowCounts(equal=10, different=1, missing=1), LATE, [DIFFERENT])


def shown(*verdicts):
    console = Console(width=200, record=True, file=io.StringIO())
    show(verdicts, console)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_what_is_right_is_one_line_and_what_is_no_error_is_told():
    lines = shown(RIGHT)
    assert lines[1].split() == ["stats", "3", "1,200", "10", "0", "2", "right"]
    assert "  2 of 9 rows came too late: 1 of 8 events count nowhere because of it" in lines
    assert "  2 rows: expired and deleted" in lines
    assert lines[-1] == "Right: 1 of 1 queries hold exactly what their source says."


def test_a_query_without_a_finished_batch_is_right_so_far_and_that_is_told():
    lines = shown(Verdict("stats", "topic stats", rows=RowCounts(ahead=2)), RIGHT)
    assert lines[1].split() == ["stats", "none", "0", "0", "0", "right"]
    assert "  it has not finished a batch yet, so no record is recounted: verify again later" in lines
    assert lines[-1].startswith("Right: 1 of 2 queries hold")
    assert lines[-1].endswith("; 1 query has not finished a batch yet.")


def test_right_is_exact_up_to_the_last_checkpoints_where_rows_are_ahead():
    lines = shown(Verdict("stats", "topic stats", 3, 1200, RowCounts(equal=10, ahead=2), LATE))
    assert lines[-1] == "Right: 1 of 1 queries hold exactly what their source says, up to their last checkpoints; 2 rows are ahead of them."
    assert any("stop the pipeline, `streamgauge run --once`, and verify again" in line for line in lines), "a second run would be refused"
    assert shown(Verdict("stats", "topic stats", 3, 1200, RowCounts(ahead=1), LATE))[-1].endswith("; 1 row is ahead of them.")


def test_of_a_wrong_row_the_columns_are_shown_that_differ_and_how_many_more_there_are():
    lines = shown(WRONG)
    assert "  WRONG: 2 of 12 rows: 1 missing, 0 extra, 1 different" in lines
    at = lines.index("  different 94301")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["the", "source", "says", '{"count":3}'],
        ["the", "sink", "holds", '{"count":4}'],
        ["...", "and", "1", "more"],
    ]
    assert lines[-1] == "WRONG: flows: the sink does not hold what the source says."


def test_whole_numbers_are_shown_alike_of_whatever_type_they_are():
    expected, found = (
        {"fare": Decimal("4960.00"), "average": 2.0, "tip": Decimal("1.50")},
        {"fare": 4971, "average": Decimal("3.0"), "tip": 2},
    )
    lines = shown(Verdict("q", "topic q", rows=RowCounts(different=1), differences=[Difference("different", "1", expected, found)]))
    at = lines.index("  different 1")
    assert [line.split()[-1] for line in lines[at + 1 : at + 3]] == [
        '{"fare":4960,"average":2,"tip":1.5}',
        '{"fare":4971,"average":3,"tip":2}',
    ]


def test_numbers_that_are_not_whole_or_too_large_stay_as_they_are():
    numbers = {"a": Decimal("1E+400"), "b": 1e300, "c": float("nan"), "d": Decimal("NaN"), "e": -0.5}
    assert row_text(numbers) == '{"a":null,"b":1e+300,"c":null,"d":null,"e":-0.5}'


def test_a_value_that_is_no_row_and_one_that_is_not_there_are_words():
    rows = [Difference("different", "1", {"count": 1}, Unreadable("EOFError: ")), Difference("extra", "2", None, {"count": 2})]
    lines = shown(Verdict("q", "topic q", rows=RowCounts(different=1, extra=1), differences=rows))
    assert [line.split(maxsplit=3)[-1] for line in lines if line.startswith("    ")] == [
        '{"count":1}',
        "not readable: EOFError:",
        "no such row",
        '{"count":2}',
    ]


def test_a_version_beside_another_is_compared_and_is_right_all_the_same():
    verdict = Verdict(
        "stats.v2", "topic stats.v2", beside=Beside("topic stats", "2026-01-01T10:00:00Z", RowCounts(equal=4, different=1), [DIFFERENT])
    )
    assert verdict.verdict == "right"
    told = "  beside topic stats, in windows until 2026-01-01T10:00:00Z: 4 rows equal, 1 differ, 0 only in this version, 0 only in the current one"
    assert told in shown(verdict)


def test_a_query_that_cannot_be_checked_is_not_proven():
    lines = shown(RIGHT, Verdict("crowds", "topic crowds", problem="the topic was recreated"))
    assert "  not checked: the topic was recreated" in lines
    assert lines[-1] == "Not proven: crowds could not be checked; what could be is right."


def test_of_a_query_with_two_topics_one_that_is_wrong_makes_it_wrong():
    both = merged([RIGHT, Verdict("stats", "topic alerts", 3, 1200, RowCounts(equal=1, missing=1), LATE, [DIFFERENT])])
    assert (both.verdict, both.sink, both.rows.equal, both.rows.missing) == ("wrong", "topic stats and topic alerts", 11, 1)


def test_a_program_reads_how_many_rows_are_of_each_kind():
    (found,) = json.loads(as_json([WRONG]))
    assert found["rows"] == {
        **dict.fromkeys(("extra", "expired", "not_checkable", "unknown_lateness", "ahead"), 0),
        "compared": 12,
        "equal": 10,
        "missing": 1,
        "different": 1,
    }
    assert (found["verdict"], found["differences"][0]["found"]) == ("wrong", {"zip_code": "94301", "count": 4.0, "mean": 3.2})
