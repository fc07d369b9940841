"""Lets Spark answer the cases of watermark_cases.py, and writes the file of its answers: `PYTHONPATH=.:tests python -m watermark_answers`.

Each kind of case is one stream, through the pipeline's own decoder and watermarks. Its cases follow each other in event time, so far apart that a case
finds nothing of the one before. `--kinds 0:4` runs some of the kinds and keeps the other lines; the file is complete when each kind has run.
"""

import argparse
import lzma
import sys
import tempfile
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
from watermark_cases import ANSWERS, CASES, FIRST_CLOCK, KINDS, Answer, Event, Kind

from contract.settings import Settings
from pipeline.domains import nest
from pipeline.sinks.archives import ParquetArchive

START = datetime(2026, 1, 1, tzinfo=UTC)
CAMERA_STATS, *OTHERS = nest.queries(Settings(future="10 minutes"))
ARCHIVE = next(query.sink for query in OTHERS if isinstance(query.sink, ParquetArchive))
UNKNOWN = "?"
"""The line of a case that Spark has not answered yet."""


def members(seen: DataFrame, *, judged: str) -> DataFrame:
    """The events of each hour, as the sum of 2 to the power of their numbers. judged: see Kind; the product's queries judge by "event"."""
    once = seen.dropDuplicates(["device_id", "start_time"]) if judged == "event" else seen
    bit = F.expr("shiftleft(1L, int(device_id))")
    return (
        once.groupBy(F.window("start_time", "1 hour"))
        .agg(F.sum(bit).alias("members"))
        .select(F.unix_seconds("window.start").alias("start_s"), "members")
    )


def answers(spark: SparkSession, kind: Kind, seeds: Sequence[int], folder: Path) -> list[Answer]:
    """What becomes of the cases of `kind` with these seeds. folder: for records and checkpoint."""
    query = replace(CAMERA_STATS, transform=partial(members, judged=kind.judged), static_tables=(), sink=ARCHIVE, mode=kind.mode)
    settings = Settings(watermark=f"{kind.delay} minutes", partition_skew=f"{kind.skew} minutes")
    cases = [kind.case(seed) for seed in seeds]
    bases = [START + number * timedelta(minutes=kind.spacing) for number in range(len(cases) + 1)]
    batches = [[_record(event, base) for event in batch] for case, base in zip(cases, bases, strict=False) for batch in case]
    closing_all = [_record(Event("0", 0, 0, FIRST_CLOCK, FIRST_CLOCK, is_broken=False), bases[-1])]
    stream = Stream(spark, query, folder, partitions=kind.branches, settings=settings)
    done = stream.run(*batches, closing_all, [], rests=False)
    firsts = accumulate((len(case) for case in cases), initial=0)
    return [_answer(kind, case, base, first, done) for case, base, first in zip(cases, bases, firsts, strict=False)]


def _answer(kind: Kind, case: Sequence[Sequence[Event]], base: datetime, first: int, done: Sequence[Batch]) -> Answer:
    """first: the number of the first batch of `case` among those that are done."""
    of_case = range(first, first + len(case))
    oldest = base - timedelta(minutes=kind.skew + kind.delay)
    watermarks = [done[number].watermark for number in of_case]
    written: dict[int, tuple[int, int]] = {}
    for number, batch in enumerate(done[first:]):
        for row in batch.rows:
            if 0 <= row["start_s"] - base.timestamp() < kind.spacing * 60:
                written[row["start_s"]] = number, row["members"]
    members = sum(found for _, found in written.values())
    return Answer(
        watermarks=[round((one - base).total_seconds() / 60) if one and one >= oldest else None for one in watermarks],
        counted=[bool(members >> int(event.name) & 1) for batch in case for event in batch],
        too_late=[done[number].late for number in of_case],
        closed=[number if number <= len(case) else None for _, (number, _) in sorted(written.items())],
    )


def _record(event: Event, base: datetime) -> Record:
    value = b"no event" if event.is_broken else one_camera(event.name, base + timedelta(minutes=event.time))
    return Record(value, event.partition, timestamp=base + timedelta(minutes=event.clock))


def write_answers(kinds: range, spark: SparkSession) -> None:
    """Replaces the lines of `kinds` in the file of answers."""
    lines = lzma.decompress(ANSWERS.read_bytes()).decode().splitlines() if ANSWERS.exists() else [UNKNOWN] * len(KINDS) * CASES
    for number in kinds:
        with tempfile.TemporaryDirectory() as folder:
            found = answers(spark, KINDS[number], range(CASES), Path(folder) / "stream")
        lines[number * CASES : (number + 1) * CASES] = [answer.line(KINDS[number]) for answer in found]
        ANSWERS.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
        sys.stdout.write(f"kind {number} of {len(KINDS)}: {CASES} cases\n")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="lets Spark answer the cases of docs/watermark.html")
    parser.add_argument("--kinds", default=f"0:{len(KINDS)}", help="the numbers of the first kind and of the one after the last, as 0:4")
    first, end = map(int, parser.parse_args().kinds.split(":"))
    write_answers(range(first, end), shared_spark())
    stop_shared_spark()


if __name__ == "__main__":
    main()
