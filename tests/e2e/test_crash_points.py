"""A few of the crash points of docs/crash-points.md: killed before an operation, a program that runs again gives the right result."""

import pytest
from crash_points.enumeration import Enumeration
from crash_points.watched import End, refusal

pytestmark = pytest.mark.skipif(refusal() is not None, reason=str(refusal()))


@pytest.mark.parametrize(
    ("case", "most", "by_kill"),
    [
        # Spark starts again after each kill. What a kill leaves is what is restored in the next case.
        pytest.param("compacted-topic", 3, True, marks=pytest.mark.long),
        ("compacted-topic", 6, False),
        ("export", 3, True),
    ],
)
def test_killed_before_an_operation_it_is_right_after_the_next_run(fresh, tmp_path, case, most, by_kill):
    tried = list(Enumeration(case, fresh, tmp_path / case).tried(most, by_kill=by_kill))
    assert len(tried) >= most
    assert any(one.found for one in tried), "no point was reached"
    assert [one for one in tried if one.wrong] == []


def test_killed_in_the_middle_of_a_write_to_its_database_it_is_right_after_the_next_run(fresh, tmp_path):
    tried = list(Enumeration("database", fresh, tmp_path / "database").tried(6, End.TORN))
    assert "write results.db-wal" in {one.point.operation for one in tried if one.found}
    assert [one for one in tried if one.wrong] == []
