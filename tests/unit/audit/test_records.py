"""Records in a topic, and those that are read between two offsets. The broker is the one that librdkafka has for tests, without Java."""

from collections import Counter
from contextlib import closing
from datetime import datetime

from auditing import STATS, Kafka
from raw_records import write_raw

from audit.reading.records import AT_ONCE, RecordReader
from infrastructure.kafka.record_clock import LAST_CLOCK_MS


def test_one_reader_reads_any_parts_of_topics_one_after_the_other(tmp_path):
    kafka = Kafka(tmp_path)
    for topic in (STATS, "nest-logs"):
        for partition in (0, 1):
            kafka.write(topic, *(f"{topic} {partition} {offset}" for offset in range(50)), partition=partition)
    parts = [
        {(STATS, 0): (0, 50)},
        {(STATS, 0): (0, 3), (STATS, 1): (7, 7), ("nest-logs", 1): (49, 50)},
        {(STATS, 0): (3, 5)},
        {("nest-logs", 0): (10, 40), (STATS, 0): (1, 2)},
        {(STATS, 0): (50, 50)},
        {(STATS, 0): (48, 50)},
    ]
    with closing(RecordReader(kafka.settings)) as reader:
        for part in parts:
            starts, ends = ({partition: span[n] for partition, span in part.items()} for n in (0, 1))
            found = [value.decode() for table in reader.between(starts, ends) for value in table["value"].to_pylist()]
            expected = [f"{topic} {number} {offset}" for (topic, number), span in part.items() for offset in range(*span)]
            assert sorted(found) == sorted(expected), part


def test_of_a_partition_no_more_is_read_than_is_asked_for(tmp_path):
    kafka = Kafka(tmp_path)
    short, long = ("nest-logs", 0), ("nest-logs", 1)
    for topic, partition in (short, long):
        kafka.write(topic, *["value"] * 3 * AT_ONCE, partition=partition)
    with closing(RecordReader(kafka.settings)) as reader:
        found = Counter()
        for table in reader.between({short: 0, long: 0}, {short: 5, long: 3 * AT_ONCE}):
            found.update(table["partition"].to_pylist())
            if found[0] == 5 and found[1] < 3 * AT_ONCE:
                assert [one.partition for one in reader._consumer.assignment()] == [1]
    assert found == {0: 5, 1: 3 * AT_ONCE}


def test_a_header_whose_name_is_not_utf_8_is_one_without_a_name(tmp_path):
    kafka = Kafka(tmp_path)
    for _ in range(20):  # Python calls confluent-kafka without a check after a few times
        write_raw(kafka.settings, "nest-logs", b"{}", headers=[(b"\xff", b"1"), (b"b", b"2")])
    with closing(RecordReader(kafka.settings)) as reader:
        (table,) = reader.between({("nest-logs", 0): 0}, {("nest-logs", 0): 20})
    assert table["headers"].to_pylist() == [[{"name": "\ufffd", "value": b"1"}, {"name": "b", "value": b"2"}]] * 20


def test_the_time_of_a_record_is_one_of_the_years_1970_to_2999_or_that_of_records_without_one(tmp_path):
    kafka, partition = Kafka(tmp_path), ("nest-logs", 0)
    times = {
        -1: datetime(1969, 12, 31, 23, 59, 59, 999_000),  # noqa: DTZ001 - as DuckDB has it
        -2: None,
        0: datetime(1970, 1, 1),  # noqa: DTZ001
        LAST_CLOCK_MS: datetime(2999, 12, 31, 23, 59, 59, 999_000),  # noqa: DTZ001
        LAST_CLOCK_MS + 1: None,
    }
    for timestamp_ms in times:
        write_raw(kafka.settings, "nest-logs", b"{}", timestamp_ms=timestamp_ms)
    with closing(RecordReader(kafka.settings)) as reader:
        (table,) = reader.between({partition: 0}, {partition: len(times)})
    for column in ("timestamp", "clock"):
        assert table[column].to_pylist() == list(times.values()), column
