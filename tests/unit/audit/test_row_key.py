"""What a person types of a key: words in, the rows that they fit out."""

import pytest

from audit.why.row_key import Wanted
from infrastructure.errors import StreamgaugeError

WINDOW = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}
KEY = {"zone_id": 7, "wiki": "a=b", "window": WINDOW, "user": ""}


@pytest.mark.parametrize(
    "words",
    [
        ["zone_id=7"],
        ["7"],
        ["wiki=a=b"],
        ["window=2026-01-01"],
        ["window=2026-01-01 10:00"],
        ["window=2026-01-01T12:00+02:00"],
        ["2026-01-01T10:00Z", "7"],
        ["user="],
        ['{"zone_id":7,"window":{"start":"2026-01-01T10:00:00Z"}}'],
        [],
    ],
)
def test_columns_values_alone_and_json_find_a_row_and_a_time_may_be_cut(words):
    assert Wanted.of(words, tuple(KEY)).fits(KEY)


@pytest.mark.parametrize(
    "words",
    [
        ["zone_id=70"],
        ["wiki=a"],
        ["window=2026-01-01T11"],
        ["window=10:00"],
        ["window=0001-01-01T00:00+01:00"],
        ["zone_id=7", "8"],
        ['{"window":{"end":"2026-01-01T10:00:00Z"}}'],
    ],
)
def test_another_value_does_not(words):
    assert not Wanted.of(words, tuple(KEY)).fits(KEY)


def test_the_nearest_values_are_told_of_the_first_that_no_row_has():
    keys = [{**KEY, "zone_id": number} for number in (70, 71, 9)]
    assert Wanted.of(["user=", "zone_id=7"], tuple(KEY)).nothing_fits(keys) == "no row has zone_id=7; the nearest: 71, 70, 9"
    assert Wanted.of(["7"], ("zone_id",)).nothing_fits([]) == "the table has no rows"
    assert Wanted.of(["zone_id=9", "wiki=x"], tuple(KEY)).nothing_fits([{**KEY, "zone_id": 9}]).startswith("no row has wiki=x")


@pytest.mark.parametrize(("word", "what"), [("zone=7", "no key column zone; there are zone_id, wiki"), ("{7", "is not JSON")])
def test_what_is_no_key_is_one_line(word, what):
    with pytest.raises(StreamgaugeError, match=what):
        Wanted.of([word], tuple(KEY))
