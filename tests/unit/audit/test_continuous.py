"""The continuous audit: after any step of a history, it finds what a recount of all records finds; what is wrong is told once, and taken back."""

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event

import deltalake
import duckdb
import orjson
import pyarrow as pa
import pytest
from auditing import TEN_MS, Kafka, looks, result, seen
from messages import refused
from pyarrow import parquet
from running import eventually
from web_server import webhook

from audit.catalog import audited, placed, places_in
from audit.checks import table_check
from audit.checks.archive_check import ArchiveCheck
from audit.checks.dead_letters import DeadLetters
from audit.checks.table_check import TableCheck
from audit.continuous import loop
from audit.continuous.loop import CORES, Audit, pause_after
from audit.continuous.store import StoreFile, rules
from audit.reading.checkpoints import stretches
from audit.reading.records import records_between
from audit.reading.result_topic import ends_of
from audit.recount.recount import Recount
from audit.verification import verify
from contract.checkpoints.contents import Batch
from contract.topics import ALERTS, DEAD_LETTERS, VERDICTS
from infrastructure.kafka.result_table import read_to_end
from infrastructure.settings import Settings

START_MS = 1_767_261_600_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
SOURCE = "nest-logs"
STATS, STATUS, LETTERS = "nest-camera-stats", "nest-camera-status", "nest-dead-letters"
MODES = {STATS: "update", STATUS: "update", LETTERS: "append"}
TOPICS = (STATS, STATUS, "nest-camera-alerts", "nest-temperatures", SOURCE, DEAD_LETTERS.name, VERDICTS.name, ALERTS.name)
STEPS = 14


@dataclass
class Clock:
    """Time that passes when it is told to."""

    seconds: float = 0

    def __call__(self):
        return self.seconds


@dataclass
class Pipeline:
    """Queries that write what they must, as the audit has it, of batches that the test plans; and errors of each kind when they are asked for."""

    broker: Kafka
    rng: random.Random
    now_ms: int = START_MS
    ends: int = 0
    watermarks: dict = field(default_factory=lambda: defaultdict(list))
    batches: dict = field(default_factory=lambda: defaultdict(list))
    committed: dict = field(default_factory=lambda: dict.fromkeys(MODES, -1))
    written: dict = field(default_factory=lambda: defaultdict(dict))
    recount: Recount = field(default_factory=Recount)

    queries = tuple(MODES)

    def __post_init__(self):
        self.results = [one for one in audited(self.broker.settings) if one.query in MODES]

    def values(self, number):
        """Values of records: sightings, some late or twice, cameras that are offline, and some that nobody can read."""
        for _ in range(number):
            self.now_ms += self.rng.choice([0, 1000, MINUTE_MS, 9 * MINUTE_MS, 25 * MINUTE_MS])
            at_ms = self.now_ms - self.rng.choice([0, 0, 0, MINUTE_MS, 15 * MINUTE_MS, 90 * MINUTE_MS])
            camera = {"is_online": self.rng.random() < 0.8}
            if self.rng.random() < 0.8:
                time = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
                camera["last_event"] = {"has_person": True, "start_time": time}
            value = orjson.dumps({"devices": {"cameras": {self.rng.choice("abc"): camera}}})
            yield value
            if self.rng.random() < 0.2:
                yield value
            if self.rng.random() < 0.1:
                yield b"broken"

    def produce(self, number):
        begin = self.ends
        for value in self.values(number):
            self.broker.write(SOURCE, value, timestamp_ms=self.now_ms)
            self.ends += 1
        records = records_between(self.broker.settings, {(SOURCE, 0): begin}, {(SOURCE, 0): self.ends})
        self.recount.load([one.facts for one in self.results], records)

    def plan(self, query):
        """Plans a batch of all records, or of some, by the watermark of the records before it."""
        before = self.batches[query][-1] if self.batches[query] else Batch(-1, {(SOURCE, 0): 0}, 0)
        end = self.rng.randrange(before.ends[SOURCE, 0], self.ends + 1)
        newest_ms = self.newest_ms(query, before.ends[SOURCE, 0])
        watermark_ms = max(before.watermark_ms, newest_ms - 10 * MINUTE_MS, 0) if query in {STATS, STATUS} else 0
        self.batches[query].append(Batch(before.number + 1, {(SOURCE, 0): end}, watermark_ms))
        self.broker.plan(query, MODES[query], before.number + 1, end, watermark_ms)

    def newest_ms(self, query, end):
        """The newest event time before that offset, which moves the watermark."""
        table = next(one for one in self.results if one.query == query)
        if isinstance(table, DeadLetters):
            return 0
        sql = f'SELECT epoch_ms(CAST(max({table.event_time}) AS TIMESTAMP)) FROM {table.facts.name} WHERE "offset" < {end}'
        return self.recount.database.execute(sql).fetchall()[0][0] or 0

    def write(self, query, part=1.0):
        """Writes the rows of the last planned batch, or some of them."""
        *_, last = self.batches[query]
        for table in (one for one in self.results if one.query == query):
            if isinstance(table, DeadLetters):
                self.write_letters(table, last.ends, part)
                continue
            recount = self.recount
            recount.judge(table, stretches({}, self.batches[query], last.number), 0)
            rows = {key: of[-1] for key, of in recount.written(table, last.watermark_ms).items()}
            own = self.written[table.topic.name]
            for key in sorted(rows.keys() | own.keys()):  # each in its turn, so that a seed gives one history
                if rows.get(key) != own.get(key) and self.rng.random() < part:
                    self.put(table.topic.name, key, rows.get(key))

    def put(self, topic, key, row):
        self.broker.write(topic, None if row is None else orjson.dumps(row), key=key)
        self.written[topic][key] = row

    def write_letters(self, letters, ends, part):
        sql = f'SELECT topic, partition, "offset", "timestamp", reasons FROM {letters.facts.name} ORDER BY ALL'
        for topic, partition, offset, time, reasons in self.recount.database.execute(sql).fetchall():
            if offset >= ends[topic, partition]:
                continue
            key = json.dumps({"offset": offset, "partition": partition, "topic": topic}, separators=(",", ":")).encode()
            if key not in self.written[LETTERS] and self.rng.random() < part:
                headers = {"topic": topic, "partition": str(partition), "offset": str(offset), "timestamp": time, "reason": reasons[0]}
                pairs = [(name, text.encode()) for name, text in headers.items()]
                self.broker.write(DEAD_LETTERS.name, b"broken", key=key, headers=pairs, timestamp_ms=self.now_ms)
                self.written[LETTERS][key] = True

    def advance(self, query):
        """A step of the query: it plans a batch, writes a part of it, or all and commits it."""
        planned = self.batches[query][-1].number if self.batches[query] else -1
        if planned == self.committed[query]:
            self.plan(query)
            self.write(query, part=self.rng.choice([0, 0.5]))
        else:
            self.write(query)
            self.broker.commit(query, MODES[query], planned)
            self.committed[query] = planned

    def damage(self):
        """Makes a row of a table wrong, deletes it, or adds one. `write` of the next batch mends what differs."""
        topic = self.rng.choice([one for one in (STATS, STATUS) if one in self.queries])
        if (own := self.written[topic]) and (keys := sorted(key for key, row in own.items() if row)):
            key = self.rng.choice(keys)
            kind = self.rng.choice(["deleted", "changed", "added"])
            if kind == "added":
                key = key.replace(b"unknown", b"94301").replace(b'"a"', b'"z"').replace(b'"b"', b'"z"').replace(b'"c"', b'"z"')
            row = None if kind == "deleted" else {**own[self.rng.choice(keys)], **({"count": 99} if topic == STATS else {"state": "gone"})}
            self.put(topic, key, row)


@dataclass
class RealTime(Pipeline):
    """The same in real-time mode: a row is written as soon as its record is read, and what a batch has is known when it ends.

    Each partition has a watermark, the least of which counts. idle: of them, those without records. read: where each process is; None if it does
    not run, or catches up.
    """

    queries = (STATS, LETTERS)
    idle: int = 0
    ends: dict = field(default_factory=lambda: dict.fromkeys(range(3), 0))
    read: dict = field(default_factory=lambda: dict.fromkeys((STATS, LETTERS)))

    def produce(self, number):
        begin = {(SOURCE, one): end for one, end in self.ends.items()}
        for value in self.values(number):
            partition = self.rng.randrange(len(self.ends) - self.idle)
            self.broker.write(SOURCE, value, partition=partition, timestamp_ms=self.now_ms)
            self.ends[partition] += 1
        records = records_between(self.broker.settings, begin, {(SOURCE, one): end for one, end in self.ends.items()})
        self.recount.load([one.facts for one in self.results], records)

    def advance(self, query):
        """A step of the query: it starts, reads some records, ends a batch, or is killed."""
        planned = len(self.batches[query]) - 1
        if self.read[query] is None and planned > self.committed[query]:
            self.write(query, part=self.rng.choice([0.5, 1]))
            if self.rng.random() < 0.7:
                self.commit(query)
                self.read[query] = self.read[query] if self.ends == self.last(query) else None
        elif self.read[query] is None and self.committed[query] >= 0 and self.ends != self.last(query):
            self.begin(query, self.ends)  # a start catches up
            self.plan(query)
        else:
            self.rng.choice([self.reads, self.reads, self.reads, self.ends_batch, self.is_killed])(query)

    def last(self, query):
        """Where the committed batches end."""
        batch = self.batches[query][self.committed[query]] if self.committed[query] >= 0 else None
        return {one: batch.ends[SOURCE, one] if batch else 0 for one in self.ends}

    def begin(self, query, ends):
        """The batch after the committed ones has these records."""
        known = self.batches[query][: self.committed[query] + 1]
        watermark_ms = max(known[-1].watermark_ms, self.watermark_ms(query, known[-1].ends)) if known else 0
        self.batches[query] = [*known, Batch(len(known), {(SOURCE, one): end for one, end in ends.items()}, watermark_ms)]

    def watermark_ms(self, query, ends):
        """The least of the watermarks of all partitions, at these offsets."""
        table = next(one for one in self.results if one.query == query)
        if isinstance(table, DeadLetters):
            return 0
        sql = f'SELECT epoch_ms(CAST(max({table.event_time}) AS TIMESTAMP)) FROM {table.facts.name} WHERE partition = ? AND "offset" < ?'
        newest = [self.recount.database.execute(sql, [partition, end]).fetchall()[0][0] or 0 for (_, partition), end in ends.items()]
        return max(min(newest) - 10 * MINUTE_MS, 0)

    def reads(self, query):
        """It reads some records, some of the partitions further than others, and writes the rows of most."""
        self.read[query] = self.read[query] or self.last(query)
        for _ in range(self.rng.randrange(1, 4)):
            self.read[query] = {one: self.rng.randint(begin, self.ends[one]) for one, begin in self.read[query].items()}
            self.begin(query, self.read[query])
            self.write(query, part=self.rng.choice([0.7, 1]))

    def ends_batch(self, query):
        if self.read[query] is not None and self.read[query] != self.last(query):
            self.begin(query, self.read[query])
            self.write(query)
            self.plan(query)
            if self.rng.random() < 0.8:
                self.commit(query)
            else:
                self.read[query] = None  # killed in between

    def is_killed(self, query):
        """What it has read since the last commit is read again, and written again."""
        if self.read[query] is not None:
            del self.batches[query][self.committed[query] + 1 :]
            self.read[query], last = None, self.last(query)
            origins = {key: json.loads(key) for key in self.written[LETTERS]} if query == LETTERS else {}
            for key in [key for key, one in origins.items() if one["offset"] >= last[one["partition"]]]:
                del self.written[LETTERS][key]

    def plan(self, query):
        *_, last = self.batches[query]
        ends = {partition: end for (_, partition), end in last.ends.items()}
        self.broker.plan(query, "real-time", last.number, ends, last.watermark_ms)

    def commit(self, query):
        self.write(query)
        *_, last = self.batches[query]
        self.broker.commit(query, "real-time", last.number, max(last.watermark_ms, self.watermark_ms(query, last.ends)))
        self.committed[query] = last.number
        self.read[query] = self.last(query)


@pytest.fixture
def broker(tmp_path):
    return Kafka(tmp_path, TOPICS)


def audited_here(settings):
    """The results of all queries that have run, each with the checkpoint of its query."""
    places = places_in(settings)
    return [result for one in audited(settings) if (result := placed(one, places, settings))]


def told(verdict):
    """What two ways to find a verdict must agree on."""
    shown = [(one.kind, one.where, one.expected, one.found) for one in verdict.differences]
    return verdict.verdict, verdict.batch, verdict.records, verdict.rows, shown, verdict.faults, verdict.problem


@pytest.mark.parametrize(
    ("kind", "seed"),
    [(Pipeline, 0), (Pipeline, 4), *((RealTime, seed) for seed in range(2)), (partial(RealTime, idle=1), 2)],
    ids=["micro-batches", "micro-batches again", "real-time mode", "real-time mode again", "an idle partition"],
)
def test_after_each_step_the_audit_finds_what_a_recount_of_all_records_finds(broker, kind, seed):
    broker.settings = replace(broker.settings, real_time="5 seconds")
    pipeline = kind(broker, random.Random(seed))
    audit, kinds = Audit(broker.settings, print), set()
    for step in range(STEPS):
        pipeline.produce(pipeline.rng.randrange(6))
        for query in pipeline.queries:
            for _ in range(pipeline.rng.randrange(3)):
                pipeline.advance(query)
        if pipeline.rng.random() < 0.4:
            pipeline.damage()
        if pipeline.rng.random() < 0.2:  # as after a kill: nothing is in memory
            audit.close()
            audit = Audit(broker.settings, print)
        results = audited_here(broker.settings)
        whole = {(one.query, one.sink): found for (one, _), found in zip(results, verify(results, broker.settings), strict=True)}
        ours = looks(audit)
        for partition, verdict in whole.items():
            assert told(ours[partition]) == told(verdict), f"step {step}, {partition}"
            kinds |= {kind for kind, number in verdict.rows.by_kind.items() if number}
    audit.close()
    assert {"compared", "equal"} < kinds, "there were no errors to find"


class Watched:
    """An audit of the table of sightings, with the records that a correct pipeline has counted."""

    def __init__(self, broker):
        self.broker, self.clock, self.lines = broker, Clock(), []
        self.pipeline = Pipeline(broker, random.Random(1))
        self.pipeline.produce(20)
        self.run()
        self.start()

    def start(self):
        self.audit = Audit(self.broker.settings, self.lines.append, self.clock)

    def run(self):
        """A batch of all records, which is committed."""
        while self.pipeline.committed[STATS] < 0 or self.pipeline.batches[STATS][-1].ends[SOURCE, 0] < self.pipeline.ends:
            self.pipeline.advance(STATS)
        while self.pipeline.batches[STATS][-1].number > self.pipeline.committed[STATS]:
            self.pipeline.advance(STATS)

    def wait(self, seconds=30):
        for _ in range(seconds):
            self.clock.seconds += 1
            self.audit.step()

    @property
    def rows_now(self):
        return [row for row in self.pipeline.written[STATS].values() if row]

    def rows(self, topic):
        return read_to_end(self.broker.settings.kafka, topic.name).rows()

    @property
    def alerts(self):
        records = records_between(self.broker.settings, {(ALERTS.name, n): 0 for n in range(4)}, ends_of(ALERTS, self.broker.settings))
        found = [orjson.loads(value) for table in records for value in table["value"].to_pylist() if value and value[:1] == b"{"]
        return [(one["query"], one["level"]) for one in sorted(found, key=lambda one: one["time"])]


@pytest.fixture
def watched(broker):
    found = Watched(broker)
    yield found
    found.audit.close()


def test_a_wrong_row_is_told_once_within_thirty_seconds_and_taken_back_when_it_is_mended(watched):
    watched.wait()
    assert (watched.alerts, [row["verdict"] for row in watched.rows(VERDICTS)]) == ([], ["right"])
    key, row = next((key, row) for key, row in watched.pipeline.written[STATS].items() if row)
    watched.pipeline.put(STATS, key, {**row, "count": row["count"] + 1})
    watched.wait(30)
    assert watched.alerts == [(STATS, "error")]
    assert [row["verdict"] for row in watched.rows(VERDICTS)] == ["wrong"]
    watched.audit.close()
    watched.start()
    watched.wait(60)
    assert watched.alerts == [(STATS, "error")], "after a restart it is told again"
    watched.pipeline.put(STATS, key, row)
    watched.wait(30)
    assert watched.alerts == [(STATS, "error"), (STATS, "resolved")]
    assert [line.split(": ")[:2] for line in watched.lines] == [[STATS, word] for word in ("right", "wrong", "wrong", "right")]


@pytest.mark.parametrize(
    "count", [b"1" * 40, rb'"\ud800"', b'"%s"' % (b"x" * 600_000)], ids=["a long number", "half a character", "a long text"]
)
def test_a_row_of_another_program_is_told_whatever_it_holds(watched, count):
    watched.wait()
    rows = {key: row for key, row in watched.pipeline.written[STATS].items() if row}
    for key in rows:
        watched.broker.write(STATS, b'{"count":%s}' % count, key=key)
    watched.wait()
    assert watched.alerts == [(STATS, "error")]
    assert [row["verdict"] for row in watched.rows(VERDICTS)] == ["wrong"]
    for key, row in rows.items():
        watched.pipeline.put(STATS, key, row)
    watched.wait()
    assert watched.alerts == [(STATS, "error"), (STATS, "resolved")]


def test_a_wrong_row_is_taken_back_also_by_an_audit_whose_file_is_made_anew(watched):
    watched.wait()
    key, row = next((key, row) for key, row in watched.pipeline.written[STATS].items() if row)
    watched.pipeline.put(STATS, key, {**row, "count": row["count"] + 1})
    watched.wait()
    pipelines = {"time": "2026-01-01T00:00:00.000Z", "level": "error", "query": "nest-archive", "what": "given up", "detail": ""}
    watched.broker.write(ALERTS.name, b"of another program", None, orjson.dumps(pipelines), key="nest-archive")
    watched.audit.close()
    (watched.broker.settings.home / "audit" / "audit.duckdb").unlink()
    watched.start()
    watched.wait()
    watched.pipeline.put(STATS, key, row)
    watched.wait()
    levels = [level for query, level in watched.alerts if query == STATS]
    assert levels == ["error", "resolved"]
    assert watched.audit._alerted == set()


def test_the_webhook_is_told_once_of_a_wrong_row_and_once_that_it_is_right_again_also_after_a_kill(broker):
    with webhook(503, 200) as (url, taken):
        broker.settings = replace(broker.settings, alert_webhook_url=url)
        watched = Watched(broker)
        key, row = next((key, row) for key, row in watched.pipeline.written[STATS].items() if row)
        watched.pipeline.put(STATS, key, {**row, "count": row["count"] + 1})
        watched.wait()
        eventually(lambda: len(taken) == 2, "the alert, after one answer that the server is out of order")
        watched.audit._store.close()  # and nothing else, as after a kill
        watched.start()
        watched.wait()
        watched.pipeline.put(STATS, key, row)
        watched.wait()
        watched.audit.close()
    found = [(one["level"], one["text"]) for one in taken[1:]]
    assert found == [
        ("error", f"error: {STATS}: 1 of {len(watched.rows_now)} rows of topic {STATS} are wrong"),
        ("resolved", f"resolved: {STATS}: topic {STATS} is right again"),
    ]


def test_only_a_setting_that_decides_a_row_makes_the_audit_recount(tmp_path):
    settings = replace(Settings(), home=tmp_path)
    known = rules(settings)
    deciding = {
        "watermark": "5 minutes",
        "future": "5 minutes",
        "wikimedia_slide": "10 seconds",
        "nest_window": "1 day",
        "taxi_window": "1 day",
        "offline_after": "5 minutes",
        "crowd": 7,
    }
    for name, value in (deciding | {"partition_skew": "1 day", "result_retention": "1 day", "lake_uri": str(tmp_path)}).items():
        assert rules(replace(settings, **{name: value})) != known, name
    others = {"debug": True, "kafka_port": 9999, "registry_port": 9998, "driver_memory": "2g", "trigger_seconds": 3.0}
    assert rules(replace(settings, **others)) == known


def test_a_verdict_stands_until_the_query_or_its_topic_has_moved(watched):
    watched.wait()
    (result,) = watched.audit._results.values()
    first = result.check()
    assert result.check() is first
    key, row = next((key, row) for key, row in watched.pipeline.written[STATS].items() if row)
    watched.pipeline.put(STATS, key, {**row, "count": 99})
    second = result.check()
    assert (first.verdict, second.verdict) == ("right", "wrong")
    watched.pipeline.produce(1)
    watched.pipeline.plan(STATS)
    assert result.check() is not second, "a batch is planned"


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "it was deleted"), duckdb.IOException("it was deleted\nby another"), KeyError("it")]
)
def test_a_result_that_fails_to_be_read_is_not_checked_and_does_not_end_the_audit(watched, monkeypatch, error):
    watched.wait()
    (result,) = watched.audit._results.values()
    result.check = None

    def fail():
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(watched.audit, "_check_of", lambda _: fail)
        watched.wait()
    (row,) = watched.rows(VERDICTS)
    assert row["verdict"] == "not checked"
    assert row["problem"].endswith(str(error).partition("\n")[0])
    watched.wait()
    assert [row["verdict"] for row in watched.rows(VERDICTS)] == ["right"]


def test_a_table_is_right_after_checks_that_could_not_be_saved(watched, monkeypatch):
    """Each hour has a batch. Old batches and facts are forgotten at a check that is undone, as on a full disk, and made again."""

    def fail(*_):
        msg = "Failed to commit: no space left on device"
        raise duckdb.TransactionException(msg)

    for hour in range(8):
        watched.pipeline.now_ms = START_MS + hour * HOUR_MS
        watched.pipeline.produce(1)
        watched.run()
        with monkeypatch.context() as patched:
            patched.setattr(StoreFile, "save", fail)
            watched.wait(20)
        watched.broker.write(STATS, None, key="of no row")  # so that it looks again
        watched.wait(20)
        assert [row["verdict"] for row in watched.rows(VERDICTS)] == ["right"], hour


def test_an_ingested_table_must_have_the_columns_that_it_has_got_since(tmp_path, monkeypatch):
    monkeypatch.setattr("audit.checks.ingested.is_compacted", lambda *_: False)
    broker = Kafka(tmp_path, ("orders",))
    broker.write("orders", b'{"n":1,"later":2}', key="a", timestamp_ms=START_MS)
    broker.has_run("ingest-orders", 1, mode="append", committed=1, source="orders")
    row = {
        "kafka_key": "a",
        "kafka_partition": 0,
        "kafka_offset": 0,
        "kafka_timestamp": datetime.fromtimestamp(START_MS / 1000, UTC),
        "n": 1,
    }
    deltalake.write_deltalake(str(broker.settings.lake / "orders"), pa.Table.from_pylist([row]))
    audit, verdicts = Audit(broker.settings, print), []
    for columns in (["n"], ["n", "later"]):
        schema = {"topic": "orders", "columns": {"fields": [{"name": name} for name in columns]}}
        (broker.settings.lake / "orders.schema.json").write_text(json.dumps(schema))
        verdicts.append(looks(audit)["ingest-orders", "lake/orders"].verdict)
    audit.close()
    assert verdicts == ["right", "wrong"]


def test_after_a_reset_it_recounts_from_the_start(watched):
    watched.wait()
    before = dict(watched.pipeline.written[STATS])
    for path in watched.broker.checkpoint(STATS, "update").rglob("*/*"):
        path.unlink() if path.parent.name in {"offsets", "commits"} else None
    (watched.broker.checkpoint(STATS, "update") / "metadata").write_text('{"id":"of another query"}')
    watched.pipeline.batches[STATS] = [Batch(0, {(SOURCE, 0): watched.pipeline.ends}, 0)]  # none of its records is late
    watched.broker.plan(STATS, "update", 0, watched.pipeline.ends)
    watched.pipeline.write(STATS)
    watched.broker.commit(STATS, "update", 0)
    assert watched.pipeline.written[STATS] != before, "no record was late before"
    watched.wait()
    rows = sum(row is not None for row in watched.pipeline.written[STATS].values())
    assert [(row["verdict"], row["batch"], row["rows"]["equal"]) for row in watched.rows(VERDICTS)] == [("right", 0, rows)]


@pytest.mark.parametrize(("hours", "begins"), [(23, False), (25, True)])
def test_it_recounts_from_the_start_if_deletions_that_it_has_not_read_may_be_compacted_away(watched, monkeypatch, hours, begins):
    watched.wait()
    (result,) = watched.audit._results.values()
    store, name = watched.audit._store, result.name
    store.save(name, replace(store.state(name), read_at=datetime.now(UTC) - timedelta(hours=hours)))
    watched.audit.close()
    watched.start()
    key = next(key for key, row in watched.pipeline.written[STATS].items() if row)
    watched.pipeline.put(STATS, key, None)
    begun, begin = [], TableCheck.start_over
    monkeypatch.setattr(TableCheck, "start_over", lambda *arguments: begun.append(True) or begin(*arguments))
    watched.wait()
    assert bool(begun) == begins


def test_rows_that_retention_has_deleted_from_a_table_are_missing(watched, monkeypatch):
    """As of a topic that was created without compaction."""
    watched.wait()
    offsets_of = table_check.offsets_of
    deleted = {end: (end, end) for end in ends_of(result(STATS).topic, watched.broker.settings).values()}
    monkeypatch.setattr(
        table_check,
        "offsets_of",
        lambda *asked: {partition: deleted.get(end, (0, end)) for partition, (_, end) in offsets_of(*asked).items()},
    )
    watched.wait()
    assert [(row["verdict"], row["rows"]["missing"]) for row in watched.rows(VERDICTS)] == [("wrong", len(watched.rows_now))]


def test_a_damaged_file_one_that_is_not_whole_and_one_of_other_rules_are_made_anew(watched):
    watched.wait()
    file = watched.broker.settings.home / "audit" / "audit.duckdb"
    (name,) = [one.name for one in watched.audit._results.values()]
    assert watched.audit._store.state(name) is not None

    def rubbish():
        file.write_bytes(b"rubbish")

    def rubbish_where_it_is_read_later():
        content, found = file.read_bytes(), rules(watched.broker.settings).encode()
        assert found in content
        file.write_bytes(content.replace(found, b"x" * len(found)))

    def nothing_yet():  # as after a kill
        file.unlink()
        duckdb.connect(file).close()

    def other_rules():
        watched.broker.settings = replace(watched.broker.settings, future="20 minutes")

    for change in (rubbish, rubbish_where_it_is_read_later, nothing_yet, other_rules):
        watched.audit.close()
        change()
        watched.start()
        assert watched.audit._store.state(name) is None, change.__name__
        watched.wait()
        assert [row["verdict"] for row in watched.rows(VERDICTS)] == ["right"], change.__name__


def test_why_duckdb_cannot_make_its_file_is_said(tmp_path, monkeypatch):
    def opened(*_):
        msg = "IO Error: the file is on another planet\nand more"
        raise duckdb.IOException(msg)

    monkeypatch.setattr("audit.continuous.store.opened", opened)
    with refused("audit.duckdb", "IO Error: the file is on another planet"):
        StoreFile(Settings(home=tmp_path))


def test_a_damaged_checkpoint_is_one_result_that_is_not_checked_until_it_is_restored(watched):
    plan = watched.broker.checkpoint("nest-dead-letters", "append") / "offsets" / "0"
    watched.broker.has_run("nest-dead-letters", 0, mode="append", committed=1)
    whole = plan.read_bytes()
    for content, verdict in ((b"", "not checked"), (whole, "right")):
        plan.write_bytes(content)
        watched.wait(60)
        assert {row["query"]: row["verdict"] for row in watched.rows(VERDICTS)} == {STATS: "right", "nest-dead-letters": verdict}


def test_a_second_audit_of_a_home_says_once_that_it_waits_and_begins_when_that_one_ends(watched, monkeypatch):
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0.01)
    lines, tries = [], []

    class Stop(Event):
        def wait(self, timeout):
            tries.append(timeout)
            if len(tries) == 3:
                watched.audit.close()
            return super().wait(timeout)

    second = loop.start_when_alone(watched.broker.settings, lines.append, Stop())
    stop = Event()
    stop.set()
    assert loop.start_when_alone(watched.broker.settings, lines.append, stop) is None
    second.close()
    waiting = f"waiting: an audit already runs in {watched.broker.settings.home}"
    assert [line.partition(": one")[0] for line in lines] == [waiting] * 2
    assert len(tries) == 3


def test_a_topic_that_is_not_there_is_told_once_and_waited_for(tmp_path):
    broker = Kafka(tmp_path, (SOURCE, VERDICTS.name))
    broker.plan(STATS, "update", 0, 0)
    clock, lines = Clock(), []
    audit = Audit(broker.settings, lines.append, clock)
    for _ in range(30):
        clock.seconds += 1
        audit.step()
    audit.close()
    assert [line[:8] for line in lines] == ["waiting:"], lines


def test_a_damaged_schema_of_an_ingested_table_leaves_the_other_verdicts(watched):
    lake = watched.broker.settings.lake
    lake.mkdir(parents=True, exist_ok=True)
    (lake / "orders.schema.json").write_text("{")
    watched.wait()
    assert [row["verdict"] for row in watched.rows(VERDICTS)] == ["right"]
    assert [line for line in watched.lines if "orders.schema.json is not the schema of a table" in line] == watched.lines[:1]


def test_rows_that_cannot_be_checked_count_once_however_often_they_change(broker):
    pipeline, audit, counts = Pipeline(broker, random.Random(0)), Audit(broker.settings, print), []
    topic = "nest-camera-status"
    for step in range(6):
        pipeline.produce(4)
        while pipeline.committed[STATUS] < 0 or pipeline.batches[STATUS][-1].ends[SOURCE, 0] < pipeline.ends:
            pipeline.advance(STATUS)
        while pipeline.batches[STATUS][-1].number > pipeline.committed[STATUS]:
            pipeline.advance(STATUS)
        for key, row in [*pipeline.written[topic].items()]:
            pipeline.put(topic, key, {**row, "first_seen": "2025-12-01T00:00:00Z"})
        (name,) = [one.name for one in audit._results.values() if one.sink == f"topic {topic}"] or [None]
        if step:  # as if records up to that time, from which the first sightings come, were deleted
            audit._store.save(name, replace(audit._store.state(name), newest_lost_ms=START_MS - 1))
        rows = looks(audit)[STATUS, f"topic {topic}"].rows
        counts.append((rows.by_kind["compared"], rows.wrong, len(pipeline.written[topic])))
        assert bool(rows.not_checkable) == bool(step)
    audit.close()
    assert counts == [(0, 0, 0), *[(3, 0, 3)] * 5]


def test_a_row_that_may_be_missing_because_batches_are_not_known_is_not_missing_later(broker):
    times = ("12:30:00", "10:30:00", "10:31:00", "10:32:00", "13:10:00")
    broker.write(SOURCE, *(seen("a", time) for time in times))
    broker.write_count("unknown", 1, hour=12)
    broker.write_count("unknown", 1, hour=13)
    broker.plan(STATS, "update", 3, 5, TEN_MS + 3 * HOUR_MS)  # what 0 to 2 dropped is not known
    broker.commit(STATS, "update", 3)
    audit, rows = Audit(broker.settings, print), []
    for number in (4, 5):
        rows += [found.rows for found in looks(audit).values()]
        broker.write(SOURCE, seen("a", "13:10:00"))
        broker.plan(STATS, "update", number, number + 2, TEN_MS + 3 * HOUR_MS)
        broker.commit(STATS, "update", number)
    audit.close()
    assert [(one.equal, one.unknown_lateness, one.missing) for one in rows] == [(2, 1, 0), (2, 0, 0)]


def test_letters_that_expired_before_the_audit_has_read_them_are_not_missing(broker, monkeypatch):
    broker.has_run(LETTERS, 0, mode="append", committed=1)
    audit, found = Audit(broker.settings, print), []
    found += looks(audit).values()
    broker.write(SOURCE, b"broken", timestamp_ms=START_MS)
    broker.write(DEAD_LETTERS.name, b"of that record", key="expired")
    broker.plan(LETTERS, "append", 1, 1)
    broker.commit(LETTERS, "append", 1)
    monkeypatch.setattr(
        "audit.checks.dead_letters.first_and_end_offsets", lambda _, ends: {partition: (end, end) for partition, end in ends.items()}
    )
    found += looks(audit).values()
    audit.close()
    assert [(one.verdict, one.rows.missing, one.rows.not_checkable) for one in found] == [("right", 0, 0), ("right", 0, 1)]


def test_a_step_looks_at_one_result_so_that_a_stop_waits_for_no_more(broker):
    for query in (STATS, LETTERS):
        broker.plan(query, MODES[query], 0, 0)
    audit, steps = Audit(broker.settings, print, Clock()), []
    for _ in range(3):
        are_more = audit.step()
        steps.append((are_more, sum(one.verdict is not None for one in audit._results.values())))
    audit.close()
    assert steps == [(True, 1), (False, 2), (False, 2)]


class ArchivePipeline:
    """The query of an archive: a file for each batch."""

    def __init__(self, broker):
        self.broker, self.number, self.end = broker, -1, 0
        (self.archive,) = [one for one in audited(broker.settings) if one.query == "nest-archive"]
        self.folder = broker.settings.lake / "nest" / "cameras"
        (self.folder / "_spark_metadata").mkdir(parents=True)

    def plan(self, number):
        """Plans a batch of so many records."""
        values = [orjson.dumps({"devices": {"cameras": {"a": {"name": str(self.end + one)}}}}) for one in range(number)]
        self.broker.write(SOURCE, *values, timestamp_ms=START_MS)
        self.number, self.end = self.number + 1, self.end + number
        self.broker.plan("nest-archive", "append", self.number, self.end)

    def write(self, number, *, without=0):
        """Writes the file of the planned batch, which has so many records, and its line in the log."""
        recount, rows = Recount(), self.archive.facts
        recount.load([rows], records_between(self.broker.settings, {(SOURCE, 0): self.end - number + without}, {(SOURCE, 0): self.end}))
        file = self.folder / f"date=2026-01-01/part-{self.number}.parquet"
        file.parent.mkdir(exist_ok=True)
        parquet.write_table(recount.database.sql(f"FROM {rows.name}").to_arrow_table().drop_columns(["date"]), file)
        (self.folder / "_spark_metadata" / str(self.number)).write_text(f"v1\n{json.dumps({'path': file.as_uri(), 'action': 'add'})}")
        return file

    def commit(self):
        self.broker.commit("nest-archive", "append", self.number)


def test_of_an_archive_it_finds_what_a_recount_of_all_records_finds(broker):
    pipeline, audit, counts = ArchivePipeline(broker), Audit(broker.settings, print), []

    def compare():
        (result,) = audited_here(broker.settings)
        (whole,) = verify([result], broker.settings)
        (ours,) = looks(audit).values()
        assert told(ours) == told(whole)
        counts.append((ours.rows.equal, ours.rows.missing, len(ours.faults)))

    pipeline.plan(3)
    compare()
    first = pipeline.write(3)
    compare()
    pipeline.commit()
    compare()
    pipeline.plan(2)
    pipeline.write(2, without=1)
    compare()
    pipeline.commit()
    compare()
    pipeline.plan(1)
    pipeline.write(1)
    pipeline.commit()
    compare()
    content = first.read_bytes()
    first.write_bytes(content[:-10])
    compare()
    first.write_bytes(content)
    compare()
    pipeline.plan(1)
    last = pipeline.write(1)
    pipeline.commit()
    content = last.read_bytes()
    last.write_bytes(b"x" * len(content))  # as an object store that does not answer
    compare()
    last.write_bytes(content)
    compare()
    audit.close()
    assert counts == [(0, 0, 0), (0, 0, 0), (3, 0, 0), (3, 0, 0), (4, 1, 0), (5, 1, 0), (2, 4, 1), (5, 1, 0), (5, 2, 1), (6, 1, 0)]


def test_files_of_which_some_lack_columns_are_read_once(broker, monkeypatch):
    pipeline, audit, begun = ArchivePipeline(broker), Audit(broker.settings, print), []
    begin = ArchiveCheck.start_over

    def counted(*arguments):
        begun.append(True)
        return begin(*arguments)

    monkeypatch.setattr(ArchiveCheck, "start_over", counted)
    for lacks in ((), ("name",), ("name",), ()):
        pipeline.plan(1)
        file = pipeline.write(1)
        whole = parquet.read_table(file)
        names = sorted(set(whole.column_names) - set(lacks), reverse=bool(lacks))
        parquet.write_table(whole.select(names), file)
        pipeline.commit()
        (verdict,) = looks(audit).values()
        begun.append((verdict.rows.equal, verdict.rows.wrong))
    audit.close()
    assert begun == [True, (1, 0), (1, 1), (1, 2), (2, 2)], "it has begun again"


def test_all_looks_together_take_their_part_of_a_core_and_none_waits_as_long_as_it_is_dear():
    spent = [1.0, 0.25, 0.04, 0.04]
    pauses = [pause_after(seconds, spent) for seconds in spent]
    assert sum(seconds / pause for seconds, pause in zip(spent, pauses, strict=True)) == pytest.approx(CORES)
    assert pauses[0] == pytest.approx(2 * pauses[1]) == pytest.approx(5 * pauses[2])
