"""Lets Spark answer the cases of watermark_cases.py, and writes the file of its answers: `PYTHONPATH=.:tests python -m watermark_answers`.

Each kind of case is one stream, through the pipeline's own decoder and watermarks. Cases with the same watermarks run side by side, with devices of
their own; others follow each other in event time, so far apart that a case finds nothing of the one before. `--kinds 0:4` runs some of the kinds and
keeps the other lines; the file is complete when each kind has run.
"""

import argparse
import lzma
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path

from plain import one_camera
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from running import shared_spark, stop_shared_spark
from streaming import Batch, Record, Stream
from watermark_cases import ANSWERS, CASES, FIRST_CLOCK, KINDS, SIDE_BY_SIDE, Answer, Case, Event, Kind

from infrastructure.settings import Settings
from pipeline.domains import nest
from pipeline.sinks.archives import ParquetArchive

START = datetime(2026, 1, 1, tzinfo=UTC)
CAMERA_STATS, *OTHERS = nest.queries(Settings(future="10 minutes"))
ARCHIVE = next(query.sink for query in OTHERS if isinstance(query.sink, ParquetArchive))
UNKNOWN = "?"
"""The line of a case that Spark has not answered yet."""


def members(seen: DataFrame, *, judged: str) -> DataFrame:
    """The events of each case and hour, as the sum of 2 to the power of their numbers. judged: see Kind; the product's queries judge by "event"."""
    once = seen.dropDuplicates(["device_id", "start_time"]) if judged == "event" else seen
    return (
        once.groupBy(F.expr("int(split(device_id, '-')[0])").alias("side"), F.window("start_time", "1 hour"))
        .agg(F.sum(F.expr("shiftleft(1L, int(split(device_id, '-')[1]))")).alias("members"))
        .select("side", F.unix_seconds("window.start").alias("start_s"), "members")
    )


def answers(spark: SparkSession, kind: Kind, seeds: Sequence[int], folder: Path) -> list[Answer]:
    """What becomes of the cases of `kind` with these seeds, SIDE_BY_SIDE or a multiple. folder: for records and checkpoint."""
    query = replace(CAMERA_STATS, transform=partial(members, judged=kind.judged), static_tables=(), sink=ARCHIVE, mode=kind.mode)
    settings = Settings(watermark=f"{kind.delay} minutes", partition_skew=f"{kind.skew} minutes")
    groups = [[kind.case(seed) for seed in seeds[first : first + SIDE_BY_SIDE]] for first in range(0, len(seeds), SIDE_BY_SIDE)]
    bases = [START + number * timedelta(minutes=kind.spacing) for number in range(len(groups) + 1)]
    batches = [
        [_record(side, event, base) for side, batch in enumerate(at_once) for event in batch]
        for group, base in zip(groups, bases, strict=False)
        for at_once in zip(*group, strict=True)
    ]
    closing_all = [_record(0, Event("0", 0, 0, FIRST_CLOCK, FIRST_CLOCK, is_broken=False), bases[-1])]
    stream = Stream(spark, query, folder, partitions=kind.branches, settings=settings)
    done = stream.run(*batches, closing_all, [], rests=False)
    firsts = accumulate((len(group[0]) for group in groups), initial=0)
    each = zip(groups, bases, firsts, strict=False)
    return [answer for group, base, first in each for answer in _answers(kind, group, base, done[first:])]


def _answers(kind: Kind, group: Sequence[Case], base: datetime, done: Sequence[Batch]) -> list[Answer]:
    """What becomes of the cases of a group. done: its own batches, and all that follow them."""
    size = len(group[0])
    oldest = base - timedelta(minutes=kind.skew + kind.delay)
    watermarks = [
        round((of - base).total_seconds() / 60) if of and of >= oldest else None for of in (batch.watermark for batch in done[:size])
    ]
    written: list[dict[int, tuple[int, int]]] = [{} for _ in group]
    for number, batch in enumerate(done):
        for row in batch.rows:
            if 0 <= row["start_s"] - base.timestamp() < kind.spacing * 60:
                written[row["side"]][row["start_s"]] = number, row["members"]
    found = []
    for case, windows in zip(group, written, strict=True):
        members = sum(of_window for _, of_window in windows.values())
        counted = [bool(members >> int(event.name) & 1) for batch in case for event in batch]
        closed = [number if number <= size else None for _, (number, _) in sorted(windows.items())]
        found.append(Answer(watermarks, counted, closed))
    _check_dropped(kind, group, found, done)
    return found


def _check_dropped(kind: Kind, group: Sequence[Case], found: Sequence[Answer], done: Sequence[Batch]) -> None:
    """That Spark has dropped, by its own count, what it did not count. It drops rows that are already grouped by window where it can."""
    if kind.judged == "event":
        missing = Counter()
        for case, answer in zip(group, found, strict=True):
            events = [event for batch in case for event in batch]
            missing.update(one.batch for one, counted in zip(events, answer.counted, strict=True) if not (counted or one.is_dead_letter))
        told = [batch.dropped for batch in done[: len(group[0])]]
        assert told == [missing[number] for number in range(len(told))], (
            f"{kind}: {told} rows were dropped in each batch, and {missing} miss"
        )


def _record(side: int, event: Event, base: datetime) -> Record:
    value = b"no event" if event.is_broken else one_camera(f"{side}-{event.name}", base + timedelta(minutes=event.time))
    return Record(value, event.partition, timestamp=base + timedelta(minutes=event.clock))


def write_answers(kinds: range, spark: SparkSession) -> None:
    """Replaces the lines of `kinds` in the file of answers; a file for another number of CASES begins anew."""
    lines = lzma.decompress(ANSWERS.read_bytes()).decode().splitlines() if ANSWERS.exists() else []
    if len(lines) != len(KINDS) * CASES:
        lines = [UNKNOWN] * len(KINDS) * CASES
    for number in kinds:
        with tempfile.TemporaryDirectory() as folder:
            found = answers(spark, KINDS[number], range(CASES), Path(folder) / "stream")
        lines[number * CASES : (number + 1) * CASES] = [answer.line(KINDS[number]) for answer in found]
        ANSWERS.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
        sys.stdout.write(f"kind {number} of 0 to {len(KINDS) - 1}: {CASES} cases\n")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="lets Spark answer the cases of docs/watermark.html")
    parser.add_argument("--kinds", default=f"0:{len(KINDS)}", help="the numbers of the first kind and of the one after the last, as 0:4")
    first, end = map(int, parser.parse_args().kinds.split(":"))
    write_answers(range(first, end), shared_spark())
    stop_shared_spark()


if __name__ == "__main__":
    main()
