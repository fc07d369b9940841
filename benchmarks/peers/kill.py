"""What is lost when an engine is killed: `PYTHONPATH=tests python -m benchmarks.peers.kill [engine ...]`, all engines by default.

Documents of the Nest producer arrive, some of them late, too late, twice or corrupt. The engine is killed with SIGKILL KILLS times in the
middle of its work, at the same documents for each engine, and started again. Few documents arrive while it is down, so no partition falls
behind another by more than the lateness. When it has read everything, its rows are compared with what they must be:

lost          sightings within the lateness that are missing from the rows
too many      sightings that are in the rows more than once. One that came too late may be counted or not
dead letters  corrupt documents that are missing from the dead letters
said          lines of its log with a warning or an error
"""

import itertools
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import Popen
from typing import IO, Self

import orjson
import psutil
from confluent_kafka import TopicPartition

from benchmarks.measuring import family, fresh_platform, messages, own_settings, say, say_machine
from benchmarks.peers.engines import Engine, installed, peer, streamgauge
from benchmarks.sightings import Group
from contract.domains.nest import NEST_LOGS
from infrastructure import durations
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file
from producers.delivery.faults import Faults, Kind, Record, with_faults
from producers.nest.simulation import Simulation, corrupt, simulate

SEED, KILLS, DOCUMENTS, CAMERAS, SECONDS_BETWEEN = 7, 6, 20_000, 800, 0.1
START = datetime.now(UTC).replace(minute=45, second=0, microsecond=0) - timedelta(hours=2)
"""Of today: Kafka deletes what an engine keeps in topics of its own by the event's time, so old events would be lost without a kill."""
A_SECOND, A_SECOND_WHILE_DOWN, PIECE = 400, 20, 20
SETTLED_SECONDS, QUIET_SECONDS, PATIENCE_SECONDS = 15, 60, 600
ENGINES = {
    "micro-batches": "Streamgauge",
    "real-time": "Streamgauge",
    "kafka-streams": "Kafka Streams",
    "kafka-streams-exactly-once": "Kafka Streams",
    "quix": "Quix Streams",
    "quix-exactly-once": "Quix Streams",
    "bytewax": "Bytewax",
    "python-loop": "Python loop",
}


@dataclass(frozen=True)
class Truth:
    """What the rows and the dead letters must be. too_late: what may be counted besides."""

    in_time: Counter[Group]
    too_late: Counter[Group]
    corrupt: Counter[bytes]


@dataclass(frozen=True)
class Outcome:
    """Sightings lost and counted too many, of how many rows, and corrupt documents that are no dead letters."""

    lost: int
    too_many: int
    wrong_rows: int
    dead_letters_lost: int

    @classmethod
    def of(cls, rows: Iterable[tuple[bytes | None, bytes | None]], letters: Iterable[bytes], right: Truth) -> Self:
        """rows: keys and values as they were written; the last one of a group counts. letters: the documents in the dead letters."""
        parsed = (orjson.loads(value or key or b"") for key, value in rows)  # of a tombstone, the key names the group
        counted = Counter({(row["zip_code"], row["window"]["start"]): row.get("count", 0) for row in parsed})
        lost, too_many = right.in_time - counted, counted - right.in_time - right.too_late
        return cls(lost.total(), too_many.total(), len(lost | too_many), (right.corrupt - Counter(letters)).total())


EXACT = Outcome(0, 0, 0, 0)


def main() -> None:
    """Prints a line an engine."""
    say_machine()
    with tempfile.TemporaryDirectory() as folder:
        commands = installed(own_settings(Path(folder)), Path(folder))
        for name in sys.argv[1:] or ENGINES:
            with fresh_platform() as settings, tempfile.TemporaryFile() as log:
                lateness = durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK")
                if ENGINES[name] == "Streamgauge":
                    engine = streamgauge(replace(settings, real_time="off") if name == "micro-batches" else settings, "kill")
                else:
                    options = ("exactly-once",) if name.endswith("exactly-once") else ()
                    engine = peer(settings, commands, ENGINES[name], "kill", lateness, *options)
                faults = Faults(late=0.05, too_late=0.01, duplicates=0.03, corrupt=0.01, watermark_seconds=lateness, seed=SEED)
                simulation = Simulation(START, SEED, CAMERAS, SECONDS_BETWEEN, DOCUMENTS)
                records = list(with_faults(simulate(simulation), faults, corrupt))
                right = truth(records)
                ended = killed(engine, settings, records, right, log)
                say(f"{name}: {told(outcome(engine, settings, right), right)}; ended by itself {ended} times; said: {said(log)}")


def outcome(engine: Engine, settings: Settings, right: Truth) -> Outcome:
    """Compares what the engine has written."""
    rows = [(message.key(), message.value()) for message in messages(settings, engine.result)]
    return Outcome.of(rows, [message.value() or b"" for message in messages(settings, engine.dead_letters)], right)


def truth(records: Iterable[Record]) -> Truth:
    """What follows from the records alone."""
    with data_file("device_locations.csv").open() as file:
        zip_codes = dict(line.split(",")[:2] for line in file.read().splitlines()[1:])
    records = list(records)
    in_time = {fact for record in records if record.kind is not Kind.TOO_LATE for fact in record.event.facts}
    every = {fact for record in records for fact in record.event.facts}

    def by_group(facts: Iterable[tuple[str, int]]) -> Counter[Group]:
        return Counter(
            (zip_codes.get(device, "unknown"), f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:00:00Z}") for device, ms in facts
        )

    return Truth(
        by_group(in_time), by_group(every - in_time), Counter(value.event.value for value in records if value.kind is Kind.CORRUPT)
    )


def told(found: Outcome, right: Truth) -> str:
    """The outcome in words."""
    return (
        f"of {right.in_time.total():,} sightings in {len(right.in_time)} rows, {found.lost:,} lost, {found.too_many:,} too many, "
        f"{found.wrong_rows} rows wrong; of {right.corrupt.total()} dead letters, {found.dead_letters_lost} lost"
    )


def said(log: IO[bytes]) -> str:
    """Lines of the log with a warning or an error, the most frequent first, without their numbers."""
    log.seek(0)
    lines = (
        line.decode(errors="replace").strip()
        for line in log
        if re.search(rb"warn|error|exception|\blate\b|dead letter", line, re.IGNORECASE)
    )
    return (
        "; ".join(f"{times} x {line[:160]}" for line, times in Counter(re.sub(r"\d+", "#", line) for line in lines).most_common(6))
        or "nothing"
    )


def killed(engine: Engine, settings: Settings, records: Sequence[Record], right: Truth, log: IO[bytes]) -> int:
    """Sends the records while the engine runs, is killed and is started again; returns how often it has ended by itself."""
    chance, producer, ended = random.Random(SEED), settings.kafka.producer({}), 0
    spread = len(records) // (KILLS + 1)
    kills = [number * spread + chance.randrange(-spread // 4, spread // 4) for number in range(1, KILLS + 1)]
    for begin, end in itertools.pairwise([0, *kills, len(records)]):
        written = end_offset(settings, engine.result)
        with running(engine, log) as process:
            is_up, started = False, time.monotonic()
            for first in range(begin, end, PIECE):
                for record in records[first : min(first + PIECE, end)]:
                    producer.produce(NEST_LOGS.name, record.event.value, record.event.key)
                producer.flush()
                is_up = is_up or end_offset(settings, engine.result) > written
                time.sleep(PIECE / (A_SECOND if is_up or process.poll() is not None else A_SECOND_WHILE_DOWN))
            while not is_up and process.poll() is None and time.monotonic() < started + PATIENCE_SECONDS:
                time.sleep(1)
                is_up = end_offset(settings, engine.result) > written
            if end == len(records):
                wait_until_quiet(engine, settings, right)
            ended += process.poll() is not None
    return ended


@contextmanager
def running(engine: Engine, log: IO[bytes]) -> Iterator["Popen[bytes]"]:
    """The engine, until it is killed with all that it has started."""
    with Popen(engine.command, env=engine.environment, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            with suppress(psutil.NoSuchProcess):
                for one in family(process.pid):
                    with suppress(psutil.NoSuchProcess):
                        one.kill()


def wait_until_quiet(engine: Engine, settings: Settings, right: Truth) -> None:
    """Returns when nothing has been written for a while, which is longer if something is missing or wrong."""
    written, since = -1, time.monotonic()
    while time.monotonic() < since + (SETTLED_SECONDS if outcome(engine, settings, right) == EXACT else QUIET_SECONDS):
        time.sleep(1)
        if (now := end_offset(settings, engine.result) + end_offset(settings, engine.dead_letters)) != written:
            written, since = now, time.monotonic()


def end_offset(settings: Settings, topic: str) -> int:
    """How much has been written into the topic."""
    with closing(settings.kafka.consumer()) as consumer:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1] for number in partitions)


if __name__ == "__main__":
    main()
