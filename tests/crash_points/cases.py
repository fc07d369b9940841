"""What is killed: for each case, new records, a command that works on them, and what must hold when it has run again."""

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, Literal

import orjson
from plain import START, folded, one_camera, read_topic, write_counts, write_topic
from running import eventually, stop_shared_spark, streamgauge, succeed, verify

from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import checkpoints
from crash_points.incidents import never_or_too_often_taken, noted, notify, offline_and_back
from crash_points.live_changes import STREAM, delivered, live_changes, lost_or_doubled, missing
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings


@dataclass(frozen=True)
class Case:
    """feed: writes new records, in round 0, 1, 2 ... work: takes them; this is killed, and done again. wrong: what is wrong then, a line each.

    found: what a kill has left.
    reset: forgets what it has done, if there is a command for it; given the error that asks for it.
    source: the topic that it reads. variables: settings of the work, in which HOME is the home. spark: the session that the work needs, if any.
    """

    feed: Callable[[Settings, int], None]
    work: Callable[[Settings], None]
    found: Callable[[Settings], str]
    wrong: Callable[[Settings], list[str]]
    source: str = "nest-logs"
    variables: dict[str, str] = field(default_factory=dict)
    spark: Literal["in micro-batches", "in real time", "with Delta"] | None = "in micro-batches"
    needs_registry: bool = False
    reset: Callable[[Settings, str], None] | None = None


def command(*arguments: str, settings: Settings) -> None:
    """Runs a command of Streamgauge; raises what it says unless it succeeds."""
    done = streamgauge(*arguments, settings=settings, without_spark=True)  # the worker has a session
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def documents(settings: Settings, number: int) -> None:
    """A round of Nest documents, half an hour later than the one before: three cameras see a person now, two are late, and one document is none.

    A camera is heard in each third round, so that it is offline in between.
    """
    now = START + timedelta(minutes=30 * number)
    seen = [now, now + timedelta(minutes=1), now + timedelta(minutes=2), now - timedelta(minutes=40), now - timedelta(days=1)]
    values = [one_camera(f"cam-{number % 3}-{camera}", time) for camera, time in enumerate(seen)]
    write_topic(settings, "nest-logs", [*values, b"rubbish"], partitions=3, key=b"home", clock=lambda _: now)


def changes(settings: Settings, number: int) -> None:
    """Documents of two keys, with a field that no document had before, and a deletion."""
    for offset, value in enumerate((b'{"number": %d, "field_%d": {"x": 1}}' % (number, number), b'{"number": %d}' % number, None)):
        write_topic(settings, "nest-logs", [value], to=0, key=b"key-%d" % ((number + offset) % 5))


def of_query(
    name: str,
    work: Callable[[str, Settings], None],
    feed: Callable[[Settings, int], None] = documents,
    source: str = "nest-logs",
    **more: Any,
) -> Case:
    """A query. All records of its source must then be read, and the result must be as a recount has it."""

    def found(settings: Settings) -> str:
        for place in checkpoints(settings):
            if place.name.query == name and (planned := Checkpoint(place.folder).planned):
                return "a batch to repeat" if planned[-1] > Checkpoint(place.folder).last_committed else "no batch to repeat"
        return "no checkpoint"

    def wrong(settings: Settings) -> list[str]:
        found, expected = verify(name, settings=settings)[name], ("right", len(read_topic(settings, source)))
        return [] if (found["verdict"], found["records"]) == expected else [f"{expected} expected, and found {found}"]

    def reset(settings: Settings, failure: str) -> None:
        for query in sorted(set(re.findall(r"query (\S+) given up", failure)) or {name}):  # `ingest` runs two
            command("reset", query, "--yes", settings=settings)

    return Case(feed, partial(work, name), found, wrong, source, reset=reset, **more)


def run(name: str, settings: Settings) -> None:
    """Takes all documents that have come."""
    from pipeline.running.runner import Runner
    from pipeline.spark.session import running_session

    with running_session(settings) as spark:
        Runner(spark, settings, once=True).run(alone(name, settings))


def run_and_maintain(name: str, settings: Settings) -> None:
    run(name, settings)
    command("maintain", "--retain", "1 second", "--allow-short-retention", settings=settings)


def reset_and_run(name: str, settings: Settings) -> None:
    command("reset", name, "--yes", settings=settings)
    run(name, settings)


def ingest(_: str, settings: Settings) -> None:
    command("ingest", "nest-logs", "--once", settings=settings)


def run_in_real_time(name: str, settings: Settings) -> None:
    """Catches up with all documents that have come; then more come. Ends when a checkpoint has them.

    A checkpoint each second, which the setting does not allow, costs half the time.
    """
    from pipeline.running.runner import Runner
    from pipeline.spark.session import running_session

    settings = replace(settings, real_time="1 second")
    (query,) = alone(name, settings)
    checkpoint, stop = Checkpoint(query.checkpoint_name.folder(settings)), StopRequest()

    def has_all() -> bool:
        assert not running.done(), running.exception()
        batch = checkpoint.batch(checkpoint.last_committed)
        return batch is not None and sum(batch.ends.values()) == len(read_topic(settings, "nest-logs"))

    with running_session(settings) as spark, ThreadPoolExecutor(1) as thread:
        running = thread.submit(Runner(spark, settings, stop_requested=stop).run, [query])
        try:
            eventually(has_all, "a checkpoint of all documents")
            documents(settings, len(read_topic(settings, "nest-logs")) // 6)
            eventually(has_all, "a checkpoint of all documents")
        finally:
            stop.set()
        running.result()


PEOPLE = "select hour(window.start) as hour, sum(count) as people from live_nest_camera_stats group by all"


def derive_people(settings: Settings) -> None:
    """A derived table. Raises AssertionError unless it then has the rows of the topic, and a second time finds nothing to do."""
    from pipeline.lake.derived_tables import derive
    from pipeline.spark.session import running_session

    expected: Counter[int] = Counter()
    for row in folded(settings, "nest-camera-stats").values():
        expected[datetime.fromisoformat(row["window"]["start"]).hour] += row["count"]
    with running_session(settings) as spark:
        derive("people", PEOPLE, spark, settings)
        table = spark.read.format("delta").load(str(settings.lake / "derived" / "people"))
        assert {row.hour: row.people for row in table.collect()} == expected
        assert derive("people", PEOPLE, spark, settings, only_compare=True) == "unchanged"


def written(settings: Settings) -> str:
    log = settings.lake / "derived" / "people" / "_delta_log"
    return "no table" if not any(log.glob("*.json")) else f"version {max(int(path.stem) for path in log.glob('*.json'))}"


def produce_changes(settings: Settings) -> None:
    """Until all events of the live stream have come."""
    command("produce", "wikimedia", "--live", "--limit", str(missing(settings)), settings=settings)


def alone(name: str, settings: Settings) -> list[Any]:
    """The query without that of its dead letters."""
    from pipeline.catalog import chosen

    return [query for query in chosen([name], settings) if query.name == name]


def counts(settings: Settings, number: int) -> None:
    """Rows of three days, of which one is new, one changes and one goes."""
    write_counts(settings, {24 * number: 1, 24 * (number - 1): 2, 24 * (number - 2): None} if number > 1 else {24 * number: 1})


def differing_files(settings: Settings) -> str:
    done = streamgauge("export", "nest-camera-stats", "--check", settings=settings)
    return "files that differ from the topic" if done.returncode else "files as the topic"


def exported(settings: Settings) -> list[str]:
    """The files that readers see must be as the topic, and no others."""
    done = streamgauge("export", "nest-camera-stats", "--check", settings=settings)
    seen = {path.name for path in settings.lake.rglob("[!.]*") if path.is_file()}
    return [done.stdout] * (done.returncode != 0) + [f"left over: {name}" for name in seen - {"rows.parquet"}]


def a_row_of_nobody(settings: Settings, number: int) -> None:
    """First, a table that is right; then a row that should not be there comes in each odd round, and goes in each even one."""
    if number == 0:
        documents(settings, 0)
        succeed("run", "nest-camera-stats", "--once", settings=settings)
        stop_shared_spark()
    else:
        write_counts(settings, {1000: 1 if number % 2 else None})


def audit(settings: Settings) -> None:
    """Looks at all results for a minute, of which each step is a second."""
    from audit.continuous.loop import Audit

    second = count()
    auditing = Audit(settings, lambda _: None, partial(next, second))
    for _ in range(60):
        auditing.step()
    auditing.close()


def audits(settings: Settings) -> list[str]:
    """What the audit has said of the table, in order."""
    alerts = [orjson.loads(record.value()) for record in read_topic(settings, "alerts") if record.key() == b"nest-camera-stats"]
    return [alert["level"] for alert in alerts if alert["by"] == "audit"]


def wrongly_told(settings: Settings) -> list[str]:
    """Each change must be told once, so the levels alternate, and the last is as the table is now."""
    told, is_right = audits(settings), verify("nest-camera-stats", settings=settings)["nest-camera-stats"]["verdict"] == "right"
    expected = [("error", "resolved")[number % 2] for number in range(len(told))]
    return (
        []
        if told == expected and (len(told) % 2 == 0) == is_right
        else [f"the table is {'right' if is_right else 'wrong'}, and told was {told}"]
    )


CASES = {
    "compacted-topic": of_query("nest-camera-stats", run),
    "archive": of_query("nest-archive", run),
    "dead-letters": of_query("nest-dead-letters", run),
    "real-time": of_query("nest-camera-stats", run_in_real_time, variables={"STREAMGAUGE_REAL_TIME": "5 seconds"}, spark="in real time"),
    "database": of_query(
        "nest-camera-stats-database",
        run,
        counts,
        "nest-camera-stats",
        variables={"STREAMGAUGE_DATABASE_URL": "sqlite:///HOME/results.db"},
    ),
    "timers": of_query("nest-camera-status", run),
    "delta": of_query("nest-archive-delta", run_and_maintain, spark="with Delta"),
    "merge": of_query("ingest-nest-logs", ingest, changes, spark="with Delta"),
    "reset": of_query("nest-archive", reset_and_run),
    "audit": Case(
        a_row_of_nobody,
        audit,
        lambda settings: "a change not told" if wrongly_told(settings) else "the change told",
        wrongly_told,
        spark=None,
    ),
    "derive": Case(counts, derive_people, written, lambda _: [], "nest-camera-stats", spark="with Delta"),
    "live-changes": Case(
        live_changes,
        produce_changes,
        delivered,
        lost_or_doubled,
        variables={"WIKIMEDIA_URL": STREAM},
        spark=None,
        needs_registry=True,
    ),
    "notify": Case(offline_and_back, notify, noted, never_or_too_often_taken, spark=None),
    "export": Case(
        counts, lambda settings: command("export", "nest-camera-stats", settings=settings), differing_files, exported, spark=None
    ),
}
