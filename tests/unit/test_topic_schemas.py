"""The JSON Schemas of the topics, by a validator: they accept every row that the program reads, and refuse what it refuses but for what JSON Schema cannot say."""

import json

import pytest
from documents import ROOT
from foreign_rows import DECLARED, example, mutated
from jsonschema import Draft202012Validator

from infrastructure.rows import decoder

SCHEMAS = {file.name.removesuffix("-value.json"): file for file in (ROOT / "data" / "schemas").glob("*-value.json")}
BEYOND_JSON_SCHEMA = (
    *("expected a time with a time zone", "Invalid isoformat string", "expected an end after the start", "expected a partition"),
    "Input should be a valid integer, found 1.7e+18",
)


def refusal(decode, value):
    try:
        decode(value)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_accepts_the_rows_that_the_program_reads_and_no_others(name):
    schema = json.loads(SCHEMAS[name].read_text())
    Draft202012Validator.check_schema(schema)
    is_valid, decode = Draft202012Validator(schema).is_valid, decoder(DECLARED[name])
    assert is_valid(example(name))
    for _, value in mutated(example(name)):
        reason = refusal(decode, value)
        if reason is None or not any(beyond in reason for beyond in BEYOND_JSON_SCHEMA):
            assert is_valid(json.loads(value)) == (reason is None), (value, reason)
