"""The answers that tests/unit/test_watermark_page.py holds docs/watermark.html against are those of this Spark: some cases of each kind run again."""

import pytest
from watermark_answers import answers
from watermark_cases import KINDS, SIDE_BY_SIDE, read_answers

SOME = range(SIDE_BY_SIDE)


@pytest.mark.parametrize("kind", KINDS[::7], ids=str)
def test_spark_answers_as_the_file_says(spark, tmp_path, kind):
    of_file = {seed: line for of_kind, seed, line in read_answers() if of_kind == kind}
    came = answers(spark, kind, SOME, tmp_path / "stream")
    assert [answer.line(kind) for answer in came] == [of_file[seed] for seed in SOME]
