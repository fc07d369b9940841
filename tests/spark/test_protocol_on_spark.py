"""A few of the schedules of `make schedules`: Spark does what the model in protocol.py does, on which the proof in tests/unit/test_protocol.py rests."""

from dataclasses import replace
from itertools import islice

import pytest
from protocol_on_spark import QUERY, replayed


def test_spark_plans_counts_and_commits_as_the_model_whatever_is_killed(spark, tmp_path):
    assert list(islice(replayed(spark, 0, tmp_path / "replay"), 15)) == [None] * 15


@pytest.mark.parametrize("mistake", ["takes_newest_state", "forgets_watermark"])
def test_spark_disagrees_with_a_model_that_is_mistaken(spark, tmp_path, mistake):
    assert any(islice(replayed(spark, 0, tmp_path / "replay", replace(QUERY, **{mistake: True})), 50))
