"""The last check of labs 3, 5 and 12: what the audit finds, as a learner reads it."""

import pytest

from streamgauge.workshop.grading import not_right


def verdict(query="counts", verdict="right", compared=9, **found):
    rows = {"compared": compared, "missing": 0, "extra": 0, "different": found.pop("different", 0)}
    return {"query": query, "verdict": verdict, "rows": rows, "faults": [], "problem": None, **found}


@pytest.mark.parametrize(
    ("found", "came"),
    [
        (verdict(verdict="wrong", different=2), "counts: 2 of 9 rows are wrong"),
        (verdict(compared=0), "counts: no rows"),
        (verdict(verdict="wrong", faults=["a file is twice in it"]), "counts: a file is twice in it; 0 of 9 rows are wrong"),
        (verdict(verdict="not checked", problem="Kafka is away"), "counts: Kafka is away"),
        (verdict("letters", "wrong", different=1), "letters: 1 of 9 rows are wrong"),
    ],
)
def test_what_is_not_right_is_told_with_the_command_that_shows_it(found, came):
    failure = not_right([verdict(), found], "counts", "streamgauge")
    assert failure is not None
    assert f"came:      {came}\n" in failure.text
    assert f"`streamgauge verify {found['query']}`" in failure.hint


def test_dead_letters_need_no_rows():
    assert not_right([verdict(), verdict("letters", compared=0)], "counts", "streamgauge") is None
