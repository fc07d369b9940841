"""What a rate of Nest documents needs, and what breaks first: `PYTHONPATH=tests python -m benchmarks.scale`.

--events-per-second, --cameras   1,000,000 and 100,000,000 by default
--unit SECONDS                   CPU time of 5,000,000 additions in a Python loop on the machines that will run it; 0.15 by default
--price USD                      of a core with 4 GiB for an hour; 0.05 by default
--measure                        takes the costs anew, in 20 minutes on two cores, and compares what follows from them with measurements

The prediction is arithmetic on costs.json, which --measure writes. docs/measured.md says what it leaves out, and benchmarks/NOTES.md explains the model.
"""

import argparse
from collections.abc import Iterator
from math import ceil

from benchmarks.measuring import say, say_machine
from benchmarks.scale.costs import Costs, keep, read
from contract.domains.nest import NEST_LOGS

SHARE_IN_USE = 0.6
"""Of the cores. The rest catches up after a restart."""
DAY_SECONDS, GIB = 86_400, 2**30
DOCUMENT_BYTES, MOST_BYTES_A_PARTITION, MOST_BYTES_A_BROKER = 1567, 10e6, 100e6
PRODUCED_A_SECOND, VERIFIED_A_SECOND = 81_000, 83_000
"""By one process each, where the unit is 0.15 s."""
SIGHTING_SHARE, LATENESS_SECONDS = 0.01, 600
"""Documents with a new sighting (measured: 0.8 %), and how long deduplication keeps it."""
PAGE_BYTES, PAGE_GIB = 1104, 4
"""Memory of the dashboard for a key, and how much it may have."""
CORRUPT_SHARE = 0.01
LONGEST_BATCH_SECONDS = 10
BEHIND_AN_EXCHANGE = ("nest-camera-status",)
"""Queries whose work does not depend on the number of partitions that they read."""


def main() -> None:
    """Prints a line a query, a line a resource, and the limits in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events-per-second", type=float, default=1_000_000)
    parser.add_argument("--cameras", type=float, default=100_000_000)
    parser.add_argument("--unit", type=float, default=0.15)
    parser.add_argument("--price", type=float, default=0.05)
    parser.add_argument("--measure", action="store_true")
    asked = parser.parse_args()
    if asked.measure:
        from benchmarks.scale.measure import measure

        say_machine()
        keep(measure())
    for line in prediction(read(), asked.events_per_second, asked.cameras, unit=asked.unit, price=asked.price):
        say(line)


def prediction(costs: dict[str, Costs], rate: float, cameras: float, *, unit: float, price: float) -> Iterator[str]:
    """The lines. rate: documents a second. unit: seconds. price: of a core for an hour."""
    yield f"{rate:,.0f} documents/s of {cameras:,.0f} cameras"
    yield ""
    total, partitions = 0, partitions_of(costs, rate, unit)
    for query, one in costs.items():
        cores = cores_of(one, rate, unit)
        total += cores
        yield f"{query:20} {cores:8,} cores  {batch_seconds(one, partitions, unit):8.1f} s a batch"
    state = rate * SIGHTING_SHARE * LATENESS_SECONDS * costs["nest-camera-stats"].state_bytes
    state += cameras * costs["nest-camera-status"].state_bytes
    yield f"{'partitions':20} {partitions:8,}"
    yield f"{'state in memory':20} {state / GIB:8,.0f} GiB, {state / GIB / total:.2f} GiB a core"
    yield f"{'brokers':20} {ceil(3 * rate * DOCUMENT_BYTES / MOST_BYTES_A_BROKER):8,} with three copies of each record"
    yield f"{'producers':20} {ceil(rate * unit / 0.15 / PRODUCED_A_SECOND):8,}"
    yield f"{'cost a day':20} {total * 24 * price:8,.0f} USD for the cores"
    yield ""
    yield "what breaks first:"
    limits = sorted(limits_of(costs, rate / cameras, unit))
    for most, what in limits:
        yield f"  {most:12,.0f} documents/s  {'' if most > rate else '(below the rate) '}{what}"


def cores_of(costs: Costs, rate: float, unit: float) -> int:
    """Cores of a query, in use for SHARE_IN_USE of the time."""
    return ceil(rate * costs.record * unit / costs.parallel / SHARE_IN_USE)


def partitions_of(costs: dict[str, Costs], rate: float, unit: float) -> int:
    """Partitions of the source: a core reads each, and none takes more than MOST_BYTES_A_PARTITION."""
    reading = [cores_of(one, rate, unit) for query, one in costs.items() if query not in BEHIND_AN_EXCHANGE]
    return max(NEST_LOGS.partitions, ceil(rate * DOCUMENT_BYTES / MOST_BYTES_A_PARTITION), *reading)


def batch_seconds(costs: Costs, partitions: int, unit: float) -> float:
    """A batch takes as long as the records need that arrive during the one before."""
    return costs.batch_seconds(0, cores=partitions, partitions=partitions, unit=unit) / (1 - SHARE_IN_USE)


def limits_of(costs: dict[str, Costs], documents_a_camera: float, unit: float) -> Iterator[tuple[float, str]]:
    """The rate at which something stops being enough, and what."""
    for query, one in costs.items():
        left = LONGEST_BATCH_SECONDS * (1 - SHARE_IN_USE) / unit - one.batch_wall
        if one.partition_wall:
            most = NEST_LOGS.partitions + left / one.partition_wall
            rate = most * MOST_BYTES_A_PARTITION / DOCUMENT_BYTES
            yield rate, f"batches of {query} take {LONGEST_BATCH_SECONDS} s: the driver plans {most:,.0f} partitions"
    yield (
        MOST_BYTES_A_PARTITION / DOCUMENT_BYTES / CORRUPT_SHARE,
        f"dead letters have one partition, at {CORRUPT_SHARE:.0%} corrupt documents",
    )
    page = PAGE_GIB * GIB / PAGE_BYTES
    yield page * documents_a_camera, f"the page of cameras holds its whole topic: {page:,.0f} cameras in {PAGE_GIB} GiB"
    yield VERIFIED_A_SECOND * 0.15 / unit, "verify recounts slower than documents arrive, on one machine"
    yield PRODUCED_A_SECOND * 0.15 / unit, "one producer; several share the homes"


if __name__ == "__main__":
    main()
