"""Results that read the records of one source, each at its own pace: each gets all of them, and Kafka gives each once."""

import random
from contextlib import closing

import pytest
from auditing import Kafka

from audit.continuous import recent
from audit.continuous.recent import RecentRecords
from audit.records import RecordReader

SOURCE = "nest-logs"


class Counting(RecordReader):
    """Counts the records that it reads."""

    read = 0

    def between(self, starts, ends):
        for table in super().between(starts, ends):
            self.read += len(table)
            yield table


@pytest.mark.parametrize("most_bytes", [1_000_000, 300], ids=["all are kept", "few are kept"])
def test_each_result_gets_each_record_once(tmp_path, monkeypatch, most_bytes):
    monkeypatch.setattr(recent, "MOST_BYTES", most_bytes)
    kafka, rng, partitions = Kafka(tmp_path), random.Random(1), [(SOURCE, 0), (SOURCE, 1)]
    written = dict.fromkeys(partitions, 0)
    results = [(dict.fromkeys(partitions, 0), []) for _ in range(3)]
    with closing(Counting(kafka.settings)) as reader:
        records = RecentRecords(reader)

        def read(reached, found, ends):
            for table in records.between(reached, ends):
                found += zip(table["partition"].to_pylist(), table["value"].to_pylist(), strict=True)
            reached |= ends

        for _ in range(12):
            for which in partitions:
                end = written[which] + rng.randrange(8)
                kafka.write(SOURCE, *(str(offset) for offset in range(written[which], end)), partition=which[1])
                written[which] = end
            for reached, found in rng.sample(results, 2):
                read(reached, found, {which: rng.randint(reached[which], written[which]) for which in partitions})
        for reached, found in results:
            read(reached, found, written)
            expected = [(number, str(offset).encode()) for (_, number), end in written.items() for offset in range(end)]
            assert sorted(found) == sorted(expected)
    total = sum(written.values())
    assert reader.read == total if most_bytes > 100 * total else reader.read > total, (reader.read, total)


def test_after_more_records_than_are_kept_those_that_follow_are_read_once_again(tmp_path, monkeypatch):
    monkeypatch.setattr(recent, "MANY", 10)
    kafka, which = Kafka(tmp_path), (SOURCE, 0)
    with closing(Counting(kafka.settings)) as reader:
        records, reads = RecentRecords(reader), []
        for start, end in ((0, 5), (5, 35), (35, 40)):
            kafka.write(SOURCE, *map(str, range(start, end)))
            for _ in range(2):
                found = [value for table in records.between({which: start}, {which: end}) for value in table["value"].to_pylist()]
                assert found == [str(offset).encode() for offset in range(start, end)]
            reads.append(reader.read)
    assert reads == [5, 65, 70]
