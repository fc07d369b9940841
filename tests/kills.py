"""kill -9 of a pipeline in a process of its own, in the middle of a batch; or only what a checkpoint lacks after it."""

import random
import subprocess
import sys
import time

from running import below, environment, eventually, few_rows


def driver_of(pipeline):
    """The JVM of a pipeline; None before it starts."""
    return next(iter(below(pipeline.pid, "java")), None)


RUN_WITHOUT_PAUSES = """
import sys
from dataclasses import replace
from pipeline.catalog import all_queries
from pipeline.running.runner import Runner
from pipeline.spark.session import running_session
from infrastructure.settings import Settings

settings = Settings.from_environment()
queries = [replace(query, trigger_seconds=0) for query in all_queries(settings) if query.name in sys.argv[1:]]
with running_session(settings) as spark:
    Runner(spark, settings).run(queries)
"""
"""Each batch right after the one before it, so that a query can be killed in the middle of a batch."""


def kill_in_a_batch(names, is_in_a_batch, settings, *, records=30, within_seconds=0.0, **variables):
    """Runs queries in batches of so many records, and kills them when `is_in_a_batch`: at once, or at a random moment within some seconds.

    variables: of their environment, besides the settings.
    """

    def frozen_in_a_batch():
        """Leaves the JVM frozen in a batch."""
        assert pipeline.poll() is None, "the pipeline ended before it could be killed"
        driver = driver_of(pipeline)
        if driver is None or not is_in_a_batch():
            return None
        time.sleep(random.uniform(0, within_seconds))
        driver.suspend()
        if is_in_a_batch():
            return driver
        driver.resume()
        return None

    command = [sys.executable, "-c", RUN_WITHOUT_PAUSES, *names]
    surroundings = environment(few_rows(settings), **variables, STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER=str(records))
    with subprocess.Popen(command, env=surroundings) as pipeline:
        try:
            eventually(frozen_in_a_batch, "every query to be in the middle of a batch").kill()
        finally:
            pipeline.kill()


def lose_last_batch(checkpoint):
    """Removes what the checkpoint says of the last batch with records, but its plan; returns its number."""
    with_rows = max(
        number for number in checkpoint.planned if number == 0 or checkpoint.batch(number).ends != checkpoint.batch(number - 1).ends
    )
    lost = {"commits": (with_rows, checkpoint.last_committed), "offsets": (with_rows + 1, checkpoint.planned[-1])}
    for folder, (first, last) in lost.items():
        for number in range(first, last + 1):
            (checkpoint.folder / folder / str(number)).unlink()
    assert checkpoint.last_committed < with_rows
    return with_rows
