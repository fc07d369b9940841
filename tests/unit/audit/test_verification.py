"""Verdicts on what is in Kafka: topics and checkpoints in, verdicts out. The broker is the one that librdkafka has for tests, without Java."""

from dataclasses import replace

import pytest
from auditing import STATS, Kafka, seen

from audit.commands import verdicts_of
from infrastructure.errors import StreamgaugeError

LETTERS = "nest-dead-letters"


@pytest.fixture
def kafka(tmp_path):
    return Kafka(tmp_path)


def test_a_table_is_right_if_it_holds_what_its_records_give_and_else_the_row_is_named(kafka):
    kafka.write("nest-logs", seen("a"), seen("a"), seen("b"), b"broken")
    kafka.has_run(STATS, 4, mode="update", committed=1)
    kafka.write_count("unknown", 2)
    found = kafka.verdict(STATS)
    assert (found.verdict, found.records, found.rows.equal, found.lateness.events) == ("right", 4, 1, 2), found
    kafka.write_count("unknown", 3)
    kafka.write_count("94301", 1)
    found = kafka.verdict(STATS)
    assert {one.kind: (one.expected and one.expected["count"], one.found["count"]) for one in found.differences} == {
        "different": (2, 3),
        "extra": (None, 1),
    }


def test_of_a_batch_under_way_a_row_may_be_there_or_not_and_no_other(kafka):
    kafka.write("nest-logs", seen("a"), seen("b"))
    kafka.has_run(STATS, 1, 2, mode="update", committed=1)
    for count, verdict in ((1, "right"), (2, "right"), (3, "wrong"), (None, "wrong")):
        kafka.write_count("unknown", count)
        assert kafka.verdict(STATS).verdict == verdict, count


def test_in_real_time_mode_a_row_may_be_ahead_also_by_a_partition_that_no_checkpoint_knows(kafka):
    kafka.settings = replace(kafka.settings, real_time="5 seconds")
    kafka.write("nest-logs", seen("a"), seen("b"))
    kafka.write("nest-logs", seen("c"), partition=1)
    kafka.has_run(STATS, 1, mode="real-time", committed=1)
    for count, kind in ((1, "equal"), (2, "ahead"), (3, "equal"), (4, "different")):
        kafka.write_count("unknown", count)
        found = kafka.verdict(STATS)
        assert (found.records, getattr(found.rows, kind)) == (1, 1), (count, found)


def test_a_letter_that_is_missing_is_named_by_its_record(kafka):
    kafka.write("nest-logs", seen("a"), b"broken")
    kafka.has_run(LETTERS, 2, mode="append", committed=1)
    (missing,) = kafka.verdict(LETTERS).differences
    assert (missing.kind, missing.where, missing.expected.reasons) == ("missing", "nest-logs-0 offset 1", ["not JSON"])


def test_a_topic_that_was_created_anew_cannot_be_checked(kafka):
    kafka.write("nest-logs", seen("a"))
    kafka.has_run(STATS, 2, mode="update", committed=1)
    found = kafka.verdict(STATS)
    assert found.verdict == "not checked"
    assert "was recreated" in found.problem


@pytest.mark.parametrize(
    "damage", [b"", b"v1\n{", b"\0" * 100, b"v1\n[]\n-", b"v1\n{}\n-", b'v1\n{"batchWatermarkMs":0}\n{"nest-logs":7}', b"\xff\n\xff\n\xff"]
)
def test_a_damaged_checkpoint_is_named_and_the_other_queries_are_verified(kafka, damage):
    kafka.write("nest-logs", seen("a"), b"broken")
    for query, mode in ((STATS, "update"), (LETTERS, "append")):
        kafka.has_run(query, 2, mode=mode, committed=1)
    kafka.write_count("unknown", 1)
    plan = kafka.checkpoint(LETTERS, "append") / "offsets" / "0"
    plan.write_bytes(damage)
    verdicts = {verdict.query: verdict for verdict in verdicts_of([], kafka.settings)}
    assert verdicts[STATS].verdict == "right"
    assert verdicts[LETTERS].verdict == "not checked"
    assert f"{plan} is damaged" in verdicts[LETTERS].problem


def test_a_query_that_has_printed_its_rows_is_left_out(kafka):
    kafka.write("nest-logs", seen("a"))
    kafka.has_run(f"{STATS}-console", 1, mode="complete", committed=1)
    with pytest.raises(StreamgaugeError, match="there is nothing to compare"):
        verdicts_of([], kafka.settings)
    kafka.has_run(STATS, 1, mode="update", committed=1)
    kafka.write_count("unknown", 1)
    assert [(verdict.query, verdict.verdict) for verdict in verdicts_of([], kafka.settings)] == [(STATS, "right")]


def test_a_query_that_nobody_audits_is_not_checked_and_one_that_has_not_run_is_an_error(kafka):
    kafka.has_run("somebodys-query", 0, mode="append", committed=1)
    assert kafka.verdict("somebodys-query").problem == "what it writes is not audited"
    with pytest.raises(StreamgaugeError, match="nest-camera-stats has not run with STREAMGAUGE_HOME"):
        kafka.verdict(STATS)


def test_of_a_time_range_its_windows_are_compared_and_the_records_read_that_matter_for_them(kafka):
    times = ["10:30:00", "11:30:00", "12:30:00", "11:59:59", "13:30:00", "11:10:00", "14:30:00"]
    kafka.write("nest-logs", *(seen(f"camera-{number}", time) for number, time in enumerate(times)))
    # Each batch but the last has one record; its watermark is 10 minutes behind the newest record before it. A batch drops by that of the one before.
    kafka.has_run(
        STATS, 1, 2, 3, 4, 5, 7, mode="update", committed=5, watermarks=[0, 10 + 1 / 3, 11 + 1 / 3, 12 + 1 / 3, 12 + 1 / 3, 13 + 1 / 3]
    )
    for hour, count in ((10, 9), (11, 2), (12, 9), (13, 9)):
        kafka.write_count("unknown", count, hour)
    found = kafka.verdict(STATS, "2026-01-01T11:00", "2026-01-01T12:00")
    assert (found.verdict, found.rows.by_kind["compared"], found.records) == ("right", 1, 3), "the second to the fourth"
    assert kafka.verdict(STATS, "2026-01-01T10:59", "2026-01-01T12:59").rows.by_kind["compared"] == 1, "windows within it"
    assert [one.found["count"] for one in kafka.verdict(STATS, "2026-01-01T12:00", None).differences] == [9, 9]
    assert kafka.verdict(STATS, None, "2026-01-01T11:00").rows.different == 1
    kafka.write_count("unknown", 3, 11)
    (different,) = kafka.verdict(STATS, "2026-01-01T11:00", "2026-01-01T12:00").differences
    assert different.expected["count"] == 2, "the last but one is late"


@pytest.mark.parametrize(("count", "verdict"), [("2", "right"), ("2.0", "wrong"), ("2e0", "wrong"), ('"2"', "wrong"), ("true", "wrong")])
def test_a_count_is_a_whole_number_as_readers_want_it(kafka, count, verdict):
    kafka.write("nest-logs", seen("a"), seen("b"))
    kafka.has_run(STATS, 2, mode="update", committed=1)
    window = '{"end":"2026-01-01T11:00:00Z","start":"2026-01-01T10:00:00Z"}'
    row = f'{{"zip_code":"unknown","window":{window},"count":{count}}}'
    kafka.write(STATS, row.encode(), key=f'{{"window":{window},"zip_code":"unknown"}}')
    assert kafka.verdict(STATS).verdict == verdict


OF_THE_FIRST = {"topic": "nest-logs", "partition": "0", "offset": "0", "timestamp": "2026-01-01T15:00:00.000Z", "reason": "not JSON"}


@pytest.mark.parametrize(
    ("key", "extra"),
    [
        ("[" * 100_000, 0),
        ('{"offset":0,"partition":0,"topic":["nest-logs"]}', 0),
        ('{"offset":0,"partition":[0],"topic":"nest-logs"}', 1),
        ('{"offset":0,"partition":"0","topic":"nest-logs"}', 1),
        ('{"offset":0.0,"partition":0,"topic":"nest-logs"}', 1),
        ('{"offset":-1,"partition":0,"topic":"nest-logs"}', 1),
        ('{"topic":"nest-logs"}', 1),
    ],
)
def test_a_letter_of_no_record_is_extra_and_one_of_another_program_is_none(kafka, key, extra):
    kafka.write("nest-logs", b"broken")
    kafka.has_run(LETTERS, 1, mode="append", committed=1)
    kafka.write("dead-letters", b"broken", key='{"offset":0,"partition":0,"topic":"nest-logs"}', headers=OF_THE_FIRST)
    kafka.write("dead-letters", b"broken", key=key, headers=OF_THE_FIRST)
    found = kafka.verdict(LETTERS)
    assert (found.rows.equal, found.rows.extra, found.rows.wrong) == (1, extra, extra)
