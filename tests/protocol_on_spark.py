"""Schedules of the model in protocol.py, taken on Spark: after each kill and at the end, its checkpoint and the table must be those of the model.

A schedule takes a second or two, because all share one session: a kill is an error in the sink, after which the query starts again. What Spark
has read is in files, one for each batch that the model plans with new records.

`make schedules` takes as many as wanted, chosen by a seed.
"""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from protocol import DELAY, WINDOW, Batch, Query, Schedules, State
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from running import shared_spark

from contract.checkpoints.contents import FILES, Checkpoint
from pipeline.spark.session import session_config

QUERY = Query((3, 12, 4, 27, 8, 13))
_CONFIG = {"spark.sql.shuffle.partitions": "1", "spark.sql.streaming.pollingDelay": "1ms"}


class Killed(Exception):  # noqa: N818 - no error, but what the schedule wants
    """Ends the query."""


class Disagreement(AssertionError):  # noqa: N818 - no error either
    """Spark does something that the model does not."""


class Replay:
    """One schedule. folder: empty, for files and the checkpoint."""

    def __init__(self, spark: SparkSession, query: Query, schedule: Sequence[State], folder: Path) -> None:
        self._times, self._files, self._checkpoint = query.times, folder / "files", folder / "checkpoint"
        self._files.mkdir()
        # When a record comes between two plans makes no difference to Spark.
        self._states = [schedule[0], *(after for before, after in pairwise(schedule) if after.come == before.come)]
        self._at, self._table, self._ends = 0, dict[int, int](), [0]
        times = F.timestamp_seconds(F.col("value").cast("int")).alias("time")
        windows = spark.readStream.text(str(self._files)).select(times).withWatermark("time", f"{DELAY} seconds")
        self._counts = windows.groupBy(F.window("time", f"{WINDOW} seconds")).count()

    def run(self) -> None:
        """Raises Disagreement."""
        while self._next is not None:
            self._take()  # a start
            self._deliver()
            writer = self._counts.writeStream.foreachBatch(self._batch).outputMode("update")
            running = writer.option("checkpointLocation", str(self._checkpoint)).start()
            try:
                running.processAllAvailable()
            except StreamingQueryException as error:
                if Killed.__name__ not in str(error):
                    raise Disagreement(str(error)) from error
            finally:
                running.stop()
            if self._next is not None and not self._is_killed:
                self._disagree("the query is idle", f"the model goes on to {self._next}")
            self._compare()
            if self._is_killed:
                self._take()

    @property
    def _now(self) -> State:
        return self._states[self._at]

    @property
    def _next(self) -> State | None:
        return self._states[self._at + 1] if self._at + 1 < len(self._states) else None

    @property
    def _is_killed(self) -> bool:
        return self._next is not None and self._next.kills > self._now.kills

    def _take(self) -> State:
        self._at += 1
        return self._now

    def _deliver(self) -> None:
        """Gives Spark the records that the model's next batch has, if that is planned next."""
        if self._next is None or len(self._next.offsets) <= len(self._now.offsets):
            return
        end = self._next.offsets[-1].end
        if end > self._ends[-1]:
            draft = self._files / ".draft"
            draft.write_text("".join(f"{time}\n" for time in self._times[self._ends[-1] : end]))
            draft.rename(self._files / str(end))
            self._ends.append(end)

    def _batch(self, rows: DataFrame, number: int) -> None:
        """The sink: takes the steps of the model until the batch is committed, or killed."""
        is_planned = len(self._now.offsets) > self._now.commits
        if not is_planned:
            self._kill_or_take()
        if (number, len(self._now.offsets)) != (self._now.commits, self._now.commits + 1):
            self._disagree(f"batch {number} runs", str(self._now))
        self._kill_or_take()
        counts = {row.start: row["count"] for row in rows.select(F.unix_seconds("window.start").alias("start"), "count").collect()}
        while self._kill_or_take().commits == number:
            (window,) = self._now.written - self._states[self._at - 1].written
            self._table[window] = counts.pop(window * WINDOW, 0)
        if counts:
            self._disagree(f"rows {counts} are left", "the model commits")
        self._deliver()

    def _kill_or_take(self) -> State:
        if self._next is None:
            self._disagree("a batch runs", "the model is at its end")
        if self._is_killed:
            raise Killed
        return self._take()

    def _compare(self) -> None:
        checkpoint, now = Checkpoint(self._checkpoint), self._now
        if checkpoint.planned and checkpoint.planned[-1] == len(now.offsets):
            # Killed before the plan: the sink cannot stop Spark there, but in the batch, and nothing else was done.
            (self._checkpoint / "offsets" / str(checkpoint.planned[-1])).unlink()
        batches = [checkpoint.batch(number) for number in checkpoint.planned]
        found = tuple(Batch(self._ends[batch.ends.get(FILES, 0)], batch.watermark_ms // 1000) for batch in batches if batch)
        if (found, checkpoint.last_committed + 1, self._table) != (now.offsets, now.commits, dict(now.table)):
            self._disagree(f"{found}, {checkpoint.last_committed + 1} committed, and {self._table}", str(now))

    def _disagree(self, found: str, expected: str) -> None:
        msg = f"Spark: {found}; the model: {expected}; after {self._states[: self._at + 1]}"
        raise Disagreement(msg)


def replayed(spark: SparkSession, seed: int, folder: Path, query: Query = QUERY) -> Iterator[str | None]:
    """Takes one schedule after the other; gives what Spark does that the model does not, or None. folder: for one after the other."""
    schedules, random = Schedules(query), Random(seed)
    with session_config(spark, _CONFIG):
        while True:
            schedule, wrong = schedules.sampled(random), None
            folder.mkdir()
            try:
                Replay(spark, query, schedule, folder).run()
            except Disagreement as error:
                wrong = str(error)
            shutil.rmtree(folder)
            yield wrong


def main(
    number: Annotated[int, typer.Option(help="how many schedules")] = 1000,
    seed: Annotated[int, typer.Option(help="the same seed chooses the same schedules")] = 0,
) -> None:
    """Take schedules of the model on Spark. Exit code 1 if they disagree in one."""
    begin, disagreements = time.monotonic(), 0
    with TemporaryDirectory(prefix="schedules-") as folder:
        for count, wrong in enumerate(replayed(shared_spark(), seed, Path(folder, "replay")), start=1):
            disagreements += wrong is not None
            if wrong or count % 10 == 0 or count == number:
                line = f"{count} schedules in {time.monotonic() - begin:.0f} s, {disagreements} disagree"
                sys.stdout.write(f"{line}{f': {wrong}' if wrong else ''}\n")
                sys.stdout.flush()
            if count == number:
                break
    sys.exit(disagreements > 0)


if __name__ == "__main__":
    typer.run(main)
