"""The prediction of what a rate needs: docs/measured.md."""

import re
from pathlib import Path

import pytest

from benchmarks.scale.__main__ import cores_of, prediction
from benchmarks.scale.costs import Costs, read

PAGE = (Path(__file__).parents[2] / "docs" / "measured.md").read_text()
PLAIN = Costs(record=1e-4, batch=2.0, batch_wall=3.0, partition_wall=0.1, parallel=0.8, state_bytes=100)


def test_the_page_shows_what_the_command_prints():
    shown = re.search(r"^```\n(1,000,000 documents/s.+?)\n```$", PAGE, re.DOTALL | re.MULTILINE)
    printed = "\n".join(prediction(read(), 1_000_000, 100_000_000, unit=0.15, price=0.05))
    assert shown[1] == printed


@pytest.mark.parametrize(
    ("cores", "partitions", "seconds"),
    [
        (1, 3, 0.15 * (3.0 + 10_000 * 1e-4)),
        (2, 3, 0.15 * (3.0 + 10_000 * 1e-4 / (2 * 0.8))),
        (8, 3, 0.15 * (3.0 + 10_000 * 1e-4 / (3 * 0.8))),
        (8, 13, 0.15 * (3.0 + 10 * 0.1 + 10_000 * 1e-4 / (8 * 0.8))),
    ],
    ids=["one core", "two cores", "no more cores than partitions", "each partition costs planning"],
)
def test_a_batch_takes_a_fixed_time_and_a_share_of_its_records_for_each_core_in_use(cores, partitions, seconds):
    assert PLAIN.batch_seconds(10_000, cores=cores, partitions=partitions, unit=0.15) == pytest.approx(seconds)


def test_a_machine_twice_as_fast_needs_half_the_cores():
    assert cores_of(PLAIN, 1_000_000, 0.15) == 2 * cores_of(PLAIN, 1_000_000, 0.075)
