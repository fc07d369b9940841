"""The clock of a record, in Spark and in plain Python: Kafka's timestamp, or what one plausible header states."""

from datetime import UTC, datetime
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from infrastructure.kafka.record_clock import CLOCK_MS, LAST_CLOCK_MS, NO_TIMESTAMP_MS, clock_header, clock_ms_of
from pipeline.sources.kafka import clock

TIMESTAMP_MS = 1_767_268_800_123
STATED_MS = 4_070_908_800_456
KAFKA_COLUMNS = "timestamp timestamp, timestampType int, headers array<struct<key: string, value: binary>>"


class FakeMessage(NamedTuple):
    stated: list
    kind: int = TIMESTAMP_CREATE_TIME

    def timestamp(self):
        return self.kind, TIMESTAMP_MS

    def headers(self):
        return self.stated


def both(spark, messages):
    """The clock of each message in ms, in Spark and in plain Python."""
    kinds = {TIMESTAMP_CREATE_TIME: 0, TIMESTAMP_LOG_APPEND_TIME: 1}
    time = datetime.fromtimestamp(TIMESTAMP_MS / 1000, UTC)
    frame = spark.createDataFrame([(time, kinds[message.kind], message.stated) for message in messages], KAFKA_COLUMNS)
    in_spark = [row.ms for row in frame.select(clock().alias("clock")).selectExpr("unix_millis(clock) AS ms").collect()]
    return in_spark, list(map(clock_ms_of, messages))


def test_a_producer_may_state_its_clock(spark):
    stated = [0, 1, STATED_MS, LAST_CLOCK_MS]
    assert both(spark, [FakeMessage([("source", b"simulated"), clock_header(ms)]) for ms in stated]) == (stated, stated)


NO_CLOCKS = [
    None,
    [],
    [("source", b"4070908800000")],
    [(CLOCK_MS, None)],
    [(CLOCK_MS, b"")],
    [(CLOCK_MS, b"soon")],
    [(CLOCK_MS, b"\xff\xfe")],
    [(CLOCK_MS, b"-1")],
    [(CLOCK_MS, b"+4070908800000")],
    [(CLOCK_MS, b" 4070908800000")],
    [(CLOCK_MS, b"4070908800000\n")],
    [(CLOCK_MS, b"4070908800000.0")],
    [(CLOCK_MS, b"4e12")],
    [(CLOCK_MS, b"2099-01-01T00:00:00Z")],
    [(CLOCK_MS, b"%d" % (LAST_CLOCK_MS + 1))],
    [(CLOCK_MS, b"9" * 400)],
    [(CLOCK_MS, "\u0664\u0660\u0667\u0660".encode())],
    [clock_header(STATED_MS), clock_header(STATED_MS)],
]


def test_what_is_no_clock_leaves_kafkas_timestamp(spark):
    for found in both(spark, list(map(FakeMessage, NO_CLOCKS))):
        assert dict(enumerate(found)) == dict.fromkeys(range(len(NO_CLOCKS)), TIMESTAMP_MS)


def test_where_the_broker_sets_timestamps_no_producer_states_its_clock(spark):
    set_by_broker = FakeMessage([clock_header(STATED_MS)], TIMESTAMP_LOG_APPEND_TIME)
    assert both(spark, [set_by_broker]) == ([TIMESTAMP_MS], [TIMESTAMP_MS])


def test_a_timestamp_is_a_clock_if_it_is_of_the_years_1970_to_2999_or_there_is_none(spark):
    clocks = {-62_135_596_800_000: None, -2: None, NO_TIMESTAMP_MS: -1, 0: 0, LAST_CLOCK_MS: LAST_CLOCK_MS, LAST_CLOCK_MS + 1: None}
    columns = ("timestamp_millis(ms) AS timestamp", "0 AS timestampType", "array(struct('a' AS key, binary('b') AS value)) AS headers")
    frame = spark.createDataFrame([(ms,) for ms in clocks], "ms long").selectExpr("ms", *columns)
    found = frame.select("ms", clock().alias("clock")).selectExpr("ms", "unix_millis(clock) AS clock").collect()
    assert {row.ms: row.clock for row in found} == clocks
