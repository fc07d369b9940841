"""The rows of a result topic at one moment. The broker is the one that librdkafka has for tests, without Java."""

import pickle

import pytest
from auditing import STATS, Kafka, result

from audit.reading.result_topic import decoder_of, read_value, rows_below
from audit.verdicts.comparison import Difference, Unreadable
from audit.verdicts.show import as_json
from audit.verdicts.verdict import Verdict
from infrastructure.settings import Settings


def test_each_key_has_its_last_value_below_the_limits_and_those_with_a_later_record_are_told(tmp_path):
    kafka = Kafka(tmp_path)
    kafka.write(STATS, b'{"count":1}', b'{"count":2}', key="renewed")
    kafka.write(STATS, b'{"count":1}', None, key="deleted")
    kafka.write(STATS, b"[1]", key="of another program")
    kafka.write(STATS, b'{"count":3}', key="renewed")
    found = rows_below(result(STATS), {(STATS, 0): 5}, kafka.settings)
    assert found.rows == {b"renewed": {"count": 2}, b"of another program": Unreadable("expected a JSON object, found list")}
    assert found.later == {b"renewed"}


@pytest.mark.parametrize(
    "value",
    [
        b'{"count":1,"count":2}',
        b'\xef\xbb\xbf{"count":2}',
        '{"count":2}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"count":%s}' % (b"[" * 2_000 + b"]" * 2_000),
        b"\xff",
        b"{}{}",
    ],
)
def test_a_value_that_other_readers_refuse_or_read_in_another_way_is_no_row(value, tmp_path):
    assert isinstance(read_value(decoder_of(result(STATS), Settings(home=tmp_path)), value), Unreadable)


def test_a_row_can_be_kept_and_shown_however_deep_it_is_nested(tmp_path):
    row = read_value(decoder_of(result(STATS), Settings(home=tmp_path)), b'{"count":%s}' % (b"[" * 1_999 + b"]" * 1_999))
    assert isinstance(row, dict)
    assert pickle.dumps(row)
    found = Verdict(STATS, STATS, differences=[Difference("different", "key", None, row)])
    assert "[[[[" in as_json([found])
