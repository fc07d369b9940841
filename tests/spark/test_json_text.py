"""What is one JSON text, and what is not although Spark would read some of it."""

import json
import random

import orjson
import pytest
from plain import each_once
from pyspark.sql import SparkSession

from contract.json_text import LIKE_OTHERS, without_case
from pipeline.formats import json_text

BEGINNING = b'{"d":1,"x":'
USABLE = [
    b'{"d":1}',
    b' \t{"d":1}\r\n',
    b'{"d":1,"x":null,"y":[{"z":[]}],"":"\xc3\xa9"}',
    rb'{"d":1,"x":"\\u0000 \\\\ud800 \ud83d\ude00 \"\\"}',
    b'{"d":1,"x":1e99999999999,"y":-0.1E+5}',
    BEGINNING + b"9" * 1000 + b"}",
    BEGINNING + b"[" * 998 + b"]" * 998 + b"}",
]
NOT_USABLE = [
    (None, "empty"),
    (b"", "empty"),
    (b" \n", "empty"),
    (b'{"d":1', "not JSON"),
    (b'{"d":1,}', "not JSON"),
    (b'{"d":01}', "not JSON"),
    (b'{"d":1,"x":.5}', "not JSON"),
    (b'{"d":1,"x":tru}', "not JSON"),
    (b"{'d':1}", "not JSON"),
    (b"{d:1}", "not JSON"),
    (b'{"d":1,"x":NaN}', "not JSON"),
    (b'{"d":1,"x":-Infinity}', "not JSON"),
    (b'{"d":1,"x":"\t"}', "not JSON"),
    (rb'{"d":1,"x":"\q"}', "not JSON"),
    (b'/* why */{"d":1}', "not JSON"),
    ('{"d":1}'.encode("utf-16-le"), "not JSON"),
    (b'1,"end":"me"}, and more', "not JSON"),
    (rb'{"d":"\ud800"}{}', "not JSON"),
    (b'{"d":1,"d":2}{}', "not JSON"),
    (b'{"d":1}{"d":2}', "more than one JSON value, or other text after the first"),
    (b'{"d":1}\n{"d":2}\n', "more than one JSON value, or other text after the first"),
    (b'{"d":1}}', "more than one JSON value, or other text after the first"),
    (b'{"d":1}]', "more than one JSON value, or other text after the first"),
    (b'{"d":1},', "more than one JSON value, or other text after the first"),
    (b'{"d":1} // why', "more than one JSON value, or other text after the first"),
    (b'{"d":1}\x00', "more than one JSON value, or other text after the first"),
    (b'{"d":1},"end":"me"}, and more', "more than one JSON value, or other text after the first"),
    (b'\xef\xbb\xbf{"d":1}', "not JSON: it begins with a byte order mark"),
    (b'{"d":1,"x":"\xff"}', "not UTF-8"),
    (b'{"d":1,"x":"\xed\xa0\x80"}', "not UTF-8"),
    (rb'{"d":1,"x":"\ud800"}', r"half of a surrogate pair, such as \ud800, which is no character"),
    (rb'{"d":1,"x":"\ud83d\ude00\uDE00"}', r"half of a surrogate pair, such as \ud800, which is no character"),
    (rb'{"d":1,"\\\ud800":1}', r"half of a surrogate pair, such as \ud800, which is no character"),
    (rb'{"d":1,"x":"\u0000"}', r"a NUL character (\u0000)"),
    *(
        (value, "a name is there twice in an object")
        for value in (b'{"d":1,"d":1}', b'{"d":1,"d":"1"}', b'{"d":1,"x":[{"y":{"z":1,"z":null}}]}', rb'{"d":1,"\u0064":2}')
    ),
    (BEGINNING + b"[" * 999 + b"]" * 999 + b"}", "not JSON, or nested more than 999 levels deep"),
    (b'{"d":' * 100_000, "not JSON, or nested more than 999 levels deep"),
    (BEGINNING + b"9" * 1001 + b"}", "not JSON, or it has a number of more than 1,000 digits or a name of more than 50,000 characters"),
    (
        b'{"d":1,"' + b"n" * 50_001 + b'":1}',
        "not JSON, or it has a number of more than 1,000 digits or a name of more than 50,000 characters",
    ),
]


@pytest.fixture
def judged(records):
    """Makes (document, misfits) and the reason of each value."""

    def judge(values, levels=json_text.MAX_LEVELS):
        frame = records(*values).selectExpr("offset", "string(value) AS text")
        reading, reason = json_text.parsed(frame["text"], "d bigint"), json_text.json_reason(frame["text"], levels)
        rows = frame.select(reading.alias("reading"), reason.alias("reason")).collect()
        return [(row.reading and (row.reading.document and row.reading.document.d, row.reading.misfits), row.reason) for row in rows]

    return judge


def test_a_json_text_is_read(judged):
    assert judged(USABLE) == [((1, False), None)] * len(USABLE)


def test_what_is_not_one_json_text_is_not_read_and_has_a_reason(judged):
    found = judged([value for value, _ in NOT_USABLE])
    for (value, reason), (reading, told) in zip(NOT_USABLE, found, strict=True):
        assert (reading, told) == (None, reason), f"{(value or b'')[:40]!r}"


def test_a_value_of_another_type_is_null_and_said(judged):
    values = [b'{"d":"1"}', b'{"d":1.5}', b'{"d":{}}', b"[1]", b"7"]
    assert judged(values) == [((None, True), None)] * len(values)


def test_a_reader_may_take_fewer_levels(judged):
    nested = [b"[" * levels + b"]" * levels for levels in (100, 101)]
    strings = [b'["' + b"[" * 200 + b'"]']
    assert [reason for _, reason in judged(nested + strings, levels=100)] == [None, "not JSON, or nested more than 100 levels deep", None]


def test_names_that_differ_in_case_only_are_found_at_any_level(records):
    values = [b'{"a":1,"b":{"a":1}}', b'{"b":{"a":1,"A":1}}', rb'{"a":1,"\u0041":1}']
    frame = records(*values).selectExpr("string(value) AS text")
    found = frame.select(json_text.names_differ_in_case_only(frame["text"]).alias("case")).collect()
    assert [row.case for row in found] == [False, True, True]


def test_names_that_differ_in_case_only_are_the_same_to_java_and_to_spark(records):
    one, other = (f"\u0130{letters}" for letters in LIKE_OTHERS)
    pairs = [
        *zip(one, other.replace("\u0130", "i"), strict=True),
        ("sin\u0131f", "SINIF"),
        ("\u039f\u03a3", "\u03bf\u03c2"),
        ("K", "\u212a"),
    ]
    different = [("stra\u00dfe", "strasse"), ("\u00fc", "u\u0308"), ("a", "\u0430")]
    java = SparkSession.active().sparkContext._jvm.java.lang.String.CASE_INSENSITIVE_ORDER
    assert [java.compare(name, as_named) == 0 for name, as_named in pairs + different] == [True] * len(pairs) + [False] * len(different)
    assert [without_case(name) == without_case(as_named) for name, as_named in pairs + different] == [True] * len(pairs) + [False] * len(
        different
    )
    frame = records(*(json.dumps({name: 1, as_named: 2}).encode() for name, as_named in pairs + different)).selectExpr(
        "string(value) AS text"
    )
    found = frame.select(json_text.names_differ_in_case_only(frame["text"]).alias("case")).collect()
    assert [row.case for row in found] == [True] * len(pairs) + [False] * len(different)


def test_a_damaged_text_is_read_if_and_only_if_a_strict_parser_reads_it(judged):
    numbers = random.Random(1)
    whole = b'{"d":1, "x":{"y":[1,2.5e3,"a\\n\\u00e9"],"z":null,"t":true}}'
    values = []
    for _ in range(2_000):
        first, last = sorted(numbers.choices(range(len(whole) + 1), k=2))
        byte = bytes([numbers.choice(b'{}[]":,\\ 0eu\xff\x00')])
        values.append(
            numbers.choice(
                [
                    whole[:first] + byte + whole[first + 1 :],
                    whole[:first] + byte + whole[first:],
                    whole[:first] + whole[last:],
                    whole[:last] + whole[first:],
                ]
            )
        )

    def is_json(value):
        try:
            orjson.loads(value)
            json.loads(value, object_pairs_hook=each_once)
        except ValueError:
            return False
        return b"\\u0000" not in value

    expected = [is_json(value) for value in values]
    assert 200 < sum(expected) < 1_800
    for value, is_read, (reading, reason) in zip(values, expected, judged(values), strict=True):
        assert (reading is not None, reason is None) == (is_read, is_read), value
