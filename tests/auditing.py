"""Records for the audit's recount, and what it takes from them; and a broker with such records, without Java."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pyarrow as pa
from confluent_kafka import Producer

from audit.catalog import audited
from audit.checks.archive import kinds_of_rows
from audit.commands import verdicts_of
from audit.reading.read_range import ReadRange
from audit.reading.records import SCHEMA
from audit.recount.recount import Recount
from audit.time_range import TimeRange
from audit.verdicts.comparison import WRONG
from contract.checkpoints.names import CheckpointName
from infrastructure.settings import Settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATS = "nest-camera-stats"


def result(query, topic=None, **settings):
    """What the audit says of that query; of one with two topics, of that topic or the first."""
    found = [one for one in audited(replace(Settings(), **settings)) if one.query == query]
    return next(one for one in found if topic is None or one.topic.name == topic)


def records(topic, *values, clock=NOON):
    """Records of partition 0, from offset 0 on."""
    number = len(values)
    columns = [[topic] * number, [0] * number, range(number), [clock] * number, [clock] * number, values, *[[None] * number] * 3]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def loaded(facts, *values, clock=NOON):
    """A recount with the facts of these values."""
    recount = Recount()
    recount.load([facts], [records(facts.source, *values, clock=clock)])
    return recount


def compared_rows(files, committed, database):
    """What is found of an archive, whose facts are in the database: rows by kind, and the records of which some are wrong."""
    found = dict(kinds_of_rows(files.facts[1].name, files.hashed, committed, database))
    wrong = [(kind, record) for record, kinds in found.items() for kind in kinds if kind in WRONG]
    return sum(found.values(), Counter()), wrong


def facts_of(query):
    """The facts from which the results of that query are made."""
    return result(query).facts


def read_range(topic, end, seen=None):
    """The prefix of a query that has committed all records of partition 0 up to `end`. seen: what was found of what it writes."""
    ends = {(topic, 0): end}
    return ReadRange(None, 0, 0, seen, [], {}, {(topic, 0): 0}, ends, ends)


def seen(camera, time="10:00:00"):
    return orjson.dumps({"devices": {"cameras": {camera: {"last_event": {"has_person": True, "start_time": f"2026-01-01T{time}Z"}}}}})


TEN_MS = 1_767_261_600_000


class Kafka:
    """A broker with empty topics, and the checkpoints of queries that have read from it. settings: of programs that use both."""

    def __init__(self, home: Path, topics=(STATS, "nest-logs", "dead-letters")) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1})
        for topic in topics:
            metadata = self._producer.list_topics(topic, timeout=10)
        (broker,) = metadata.brokers.values()
        self.settings = replace(Settings(), kafka_bootstrap_servers=f"{broker.host}:{broker.port}", home=home)

    def write(self, topic, *values, key=None, partition=0, headers=None, timestamp_ms=TEN_MS + 5 * 3_600_000):
        for value in values:
            self._producer.produce(topic, value, key, partition=partition, timestamp=timestamp_ms, headers=headers)
        assert self._producer.flush(10) == 0

    def write_count(self, zip_code, count, hour=10):
        """A row of the result. count: None deletes it."""
        window = {"end": f"2026-01-01T{hour + 1:02}:00:00Z", "start": f"2026-01-01T{hour:02}:00:00Z"}
        key = json.dumps({"window": window, "zip_code": zip_code}, separators=(",", ":"))
        row = None if count is None else orjson.dumps({"zip_code": zip_code, "window": window, "count": count})
        self.write(STATS, row, key=key)

    def has_run(self, query, *ends, mode, committed, watermarks=None, source="nest-logs"):
        """The query has planned a batch up to each of these offsets, and committed so many of them. watermarks: of the plans, as hours of the day."""
        for number, (end, hour) in enumerate(zip(ends, watermarks or [0] * len(ends), strict=True)):
            self.plan(query, mode, number, end, hour and TEN_MS + round((hour - 10) * 3_600_000), source)
        for number in range(committed):
            self.commit(query, mode, number)

    def plan(self, query, mode, number, end, watermark_ms=0, source="nest-logs"):
        """The query plans a batch up to the offset `end`, or with a source for each partition, up to the offset of each."""
        ends = end if isinstance(end, dict) else {0: end}
        sources = [json.dumps({source: {str(partition): offset}}) for partition, offset in ends.items()]
        lines = ("v1", json.dumps({"batchWatermarkMs": watermark_ms}), *sources)
        (self.checkpoint(query, mode, source) / "offsets" / str(number)).write_text("\n".join(lines))

    def commit(self, query, mode, number, next_watermark_ms=0):
        (self.checkpoint(query, mode) / "commits" / str(number)).write_text(f'v1\n{{"nextBatchWatermarkMs":{next_watermark_ms}}}')

    def checkpoint(self, query, mode, source="nest-logs"):
        """The folder, which is made if there is none."""
        folder = Path(str(CheckpointName(query, 1, mode).folder(self.settings)))
        if not folder.exists():
            for name in ("offsets", "commits", "sources/0"):
                (folder / name).mkdir(parents=True)
            (folder / "metadata").write_text('{"id":"of this query"}')
            (folder / "sources" / "0" / "0").write_text(f'v1\n{{"{source}":{{"0":0}}}}')
        return folder

    def verdict(self, query, *span):
        (verdict,) = verdicts_of([query], self.settings, span=TimeRange.of(*span or (None, None)))
        return verdict


def looks(audit):
    """What each check of the continuous audit finds at one look."""
    audit._find_results()
    return {(result.query, result.sink): audit._verdict(result) for result in audit._results.values()}
