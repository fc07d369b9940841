"""Records in a topic, and those that are read between two offsets. The broker is the one that librdkafka has for tests, without Java."""

import re
from collections import Counter
from contextlib import closing

from auditing import STATS, Kafka

from audit.audited import Facts, common_pattern
from audit.records import AT_ONCE, RecordReader
from contract.domains.nest import NEST_LOGS


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
            starts, ends = ({which: span[n] for which, span in part.items()} for n in (0, 1))
            found = [value.decode() for table in reader.between(starts, ends) for value in table["value"].to_pylist()]
            expected = [f"{topic} {number} {offset}" for (topic, number), span in part.items() for offset in range(*span)]
            assert sorted(found) == sorted(expected), part


def test_records_of_which_nothing_is_taken_are_left_out(tmp_path):
    kafka = Kafka(tmp_path)
    values = ['{"a":1}', '{"a": 1}', '{"b":1}', r'{"\u0061":1}', "a", None]
    kafka.write(STATS, *values)
    with closing(RecordReader(kafka.settings)) as reader:
        tables = reader.between({(STATS, 0): 0}, {(STATS, 0): len(values)}, only=re.compile(rb'"a"\s*:\s*1'))
        found = [value.decode() for table in tables for value in table["value"].to_pylist()]
    assert found == ['{"a":1}', '{"a": 1}', r'{"\u0061":1}']


def test_records_are_left_out_only_if_all_facts_take_something_of_the_same_ones():
    some, others = (Facts(name, NEST_LOGS, "", only=re.compile(name.encode())) for name in ("a", "b"))
    everything = Facts("c", NEST_LOGS, "")
    assert common_pattern([some, some]) == some.only
    assert common_pattern([some, others]) is None
    assert common_pattern([some, everything]) is None


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
