"""What Spark writes for JSON into a column of texts: found by trying, as the test on values in tests/spark does in each run."""

import pytest
from auditing import loaded, result

DEVICES = result("nest-devices-archive").facts
CAMERAS = result("nest-archive").facts


def read(facts, value, column):
    document = f'{{"devices":{{"cameras":{{"c":{{"name_long":{value}}}}},"locks":{{"l":{{"name_long":{value}}}}}}}}}'
    ((found,),) = loaded(facts, document.encode()).database.execute(f"SELECT {column} FROM {facts.name}").fetchall()
    return found


@pytest.mark.parametrize(
    ("value", "text", "exact"),
    [
        ('"1e12"', "1e12", "1e12"),
        (r'"\\u001f"', r"\u001f", r"\u001f"),
        ("null", None, None),
        ("true", "true", "true"),
        ("-0", "0", "0"),
        ("9" * 40, "9" * 40, "9" * 40),
        ("1e12", "1.0E12", "1.0E12"),
        ("1.50", "1.5", "1.5"),
        ("-0.0", "-0.0", "-0.0"),
        ("0.001", "0.001", "0.001"),
        ("0.0001", "1.0E-4", "1.0E-4"),
        ("9999999.0", "9999999.0", "9999999.0"),
        ("10000000.0", "1.0E7", "1.0E7"),
        ("1000000000000000000.0", "1.0E18", "1.0E18"),
        ("5e-324", "4.9E-324", "5e-324"),
        ("1e400", '"Infinity"', "1e400"),
        ("-1e400", '"-Infinity"', "-1e400"),
        ("1e-400", "0.0", "1e-400"),
        ("12345678901234567.0", "1.2345678901234568E16", "12345678901234567.0"),
        ('[ 1.50, null, "x" ]', '[1.5,null,"x"]', '[1.5,null,"x"]'),
        ('{"b":1e400,"a":12.340000000000000001}', '{"b":"Infinity","a":12.34}', '{"b":"1e400","a":"12.340000000000000001"}'),
        (r'["é😀\u00e9\u001f\u007f\/\n"]', '["é\\uD83D\\uDE00é\\u001F\x7f/\\n"]', '["é\\uD83D\\uDE00é\\u001F\x7f/\\n"]'),
    ],
)
def test_the_text_of_a_value_in_an_archive(value, text, exact):
    assert read(CAMERAS, value, "name_long") == text
    assert read(DEVICES, value, "name_long") == exact


def test_a_device_is_archived_as_its_text():
    value = '{ "a" : 1.50, "b" : 12.340000000000000001, "c" : "1e12", "d" : null }'
    assert read(DEVICES, value, "device") == '{"name_long":{"a":1.5,"b":"12.340000000000000001","c":"1e12","d":null}}'


def test_a_string_with_the_text_of_an_object_is_none():
    document = rb'{"devices":{"thermostats":"{\"t\":{\"name_long\":\"x\"}}","locks":{"l":"{\"name_long\":\"x\"}"}}}'
    rows = loaded(DEVICES, document).database.execute(f"SELECT device_type, device_id, name_long, device FROM {DEVICES.name}").fetchall()
    assert sorted(rows) == [("locks", "l", None, '{"name_long":"x"}'), ("thermostats", None, None, '{"t":{"name_long":"x"}}')]
