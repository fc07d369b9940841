"""Measures the costs of queries on two cores, and compares what follows from them with measurements on one core, on two, and on a cluster."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from clusters import running_cluster
from confluent_kafka.admin import NewPartitions
from running import environment

from benchmarks.measuring import ME, fresh_platform, say, unit_seconds
from benchmarks.scale.backlog import Sample
from benchmarks.scale.costs import Costs
from contract.domains.nest import NEST_LOGS
from infrastructure.settings import Settings

DOCUMENTS, CAMERAS, DOCUMENTS_A_SECOND = 1_000_000, 100_000, 1000
"""Each camera reports every 100 seconds."""
SMALL, BATCHES_OF_SMALL = 1000, 60
LARGE = {
    "nest-camera-stats": (50_000, 16),
    "nest-dead-letters": (50_000, 16),
    "nest-archive": (50_000, 16),
    "nest-camera-status": (5000, 12),
}
"""Records of a large batch, and how many such batches are run."""
MORE_PARTITIONS = 24
CHECKED, BETWEEN, BATCHES_BETWEEN = ("nest-camera-stats", "nest-archive"), 20_000, 24


def measure() -> dict[str, Costs]:
    """Costs by query, and a line for each comparison."""
    with backlog(partitions=3) as settings, backlog(partitions=MORE_PARTITIONS, documents=SMALL * BATCHES_OF_SMALL) as wide:
        costs = {query: costs_on_one_machine(query, settings, wide) for query in LARGE}
        for query in CHECKED:
            found = sample(settings, query, BETWEEN, BATCHES_BETWEEN, prefix=("taskset", "--cpu-list", "0"))
            compare(query, costs[query], found, "one core", cores=1)
            compare(query, costs[query], sample(settings, query, BETWEEN, BATCHES_BETWEEN), "two cores", cores=2)
        with running_cluster(settings) as cluster:
            for query in CHECKED:
                found = sample(cluster.settings, query, BETWEEN, BATCHES_BETWEEN)
                compare(query, costs[query], found, "a cluster of two workers with a core each", cores=2)
    return costs


def costs_on_one_machine(query: str, settings: Settings, wide: Settings) -> Costs:
    """The line through two sizes of batch. wide: a platform whose source has MORE_PARTITIONS."""
    many, batches = LARGE[query]
    small, large = sample(settings, query, SMALL, BATCHES_OF_SMALL), sample(settings, query, many, batches)
    spread = sample(wide, query, SMALL, BATCHES_OF_SMALL)
    records, unit = large.records - small.records, unit_seconds()
    record, wall = (large.cpu_seconds - small.cpu_seconds) / records, (large.wall_seconds - small.wall_seconds) / records
    return Costs(
        record=record / unit,
        batch=(small.cpu_seconds - small.records * record) / unit,
        batch_wall=(small.wall_seconds - small.records * wall) / unit,
        partition_wall=max(0, spread.wall_seconds - small.wall_seconds) / (MORE_PARTITIONS - NEST_LOGS.partitions) / unit,
        parallel=min(1, record / wall / 2),
        state_bytes=large.state_bytes,
    )


def compare(query: str, costs: Costs, found: Sample, place: str, *, cores: int) -> None:
    """Prints the measured and the predicted time of a batch."""
    unit, partitions = unit_seconds(), NEST_LOGS.partitions
    expected = costs.batch_seconds(found.records, cores=cores, partitions=partitions, unit=unit)
    measured = f"batches of {found.records:,.0f} records on {place}: {found.wall_seconds:.2f} s measured"
    say(f"{query}, {measured}, {expected:.2f} s predicted, ratio {expected / found.wall_seconds:.2f}")


@contextmanager
def backlog(*, partitions: int, documents: int = DOCUMENTS) -> Iterator[Settings]:
    """A platform whose source topic has so many partitions and documents."""
    with fresh_platform() as settings:
        if partitions > NEST_LOGS.partitions:
            admin = settings.kafka.admin()  # in a variable, because a client that is garbage-collected never answers
            admin.create_partitions([NewPartitions(NEST_LOGS.name, partitions)])[NEST_LOGS.name].result(30)
        load = ("--rate", str(DOCUMENTS_A_SECOND), "--speed-up", "1", "--cameras", str(CAMERAS), "--limit", str(documents), "--unpaced")
        subprocess.run([*ME, "produce", "nest", *load], env=environment(settings), check=True, stderr=subprocess.DEVNULL)
        yield settings


def sample(settings: Settings, query: str, records: int, batches: int, prefix: Sequence[str] = ()) -> Sample:
    """Runs the query from the earliest record, with checkpoints and results of its own. Exits with what it printed if it fails."""
    with tempfile.TemporaryDirectory(dir=settings.home) as home:
        own = replace(settings, home=Path(home), max_offsets_per_trigger=records)
        command = [*prefix, sys.executable, "-m", "benchmarks.scale.backlog", query, str(batches)]
        variables = {**environment(own), "PYTHONPATH": os.environ["PYTHONPATH"]}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode or not done.stdout:
            sys.exit(f"{query} ended with exit code {done.returncode}:\n{done.stderr[-4000:]}")
        return Sample(**json.loads(done.stdout.splitlines()[-1]))
