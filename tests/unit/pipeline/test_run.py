"""Where a run that failed had begun, from Spark's own text."""

import pytest

from pipeline.running.run import _offsets


@pytest.mark.parametrize(
    ("of_sources", "first"),
    [
        ('[{"wikimedia":{"0":5,"1":7}}, {"wikimedia":{"0":5,"1":7}}]', '{"wikimedia": {"0": 5, "1": 7}}'),
        ('[{"wikimedia":{"0":5}}, {"wikimedia":{"1":7}}]', '{"wikimedia": {"0": 5, "1": 7}}'),
        ("[-]", None),
        ("", None),
    ],
)
def test_the_offsets_at_which_a_failed_batch_began(of_sources, first):
    assert _offsets(of_sources) == first
