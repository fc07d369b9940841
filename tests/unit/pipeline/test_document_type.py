"""Documents in, the columns of a new table out. tests/spark/test_document_type.py compares them with those that Spark finds."""

import json

import pytest

from pipeline.ingest.document_type import MAX_LEVELS, DocumentType


def columns(*documents):
    """The columns of these documents, as Spark prints them, and those that are kept as text."""
    found = DocumentType()
    assert all(found.add(document if isinstance(document, bytes) else json.dumps(document).encode()) for document in documents)
    kind, kept_as_text = found.columns()
    return kind.simpleString().removeprefix("struct<").removesuffix(">"), kept_as_text


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([], ""),
        ([{}], ""),
        ([{"b": 1, "a": "x"}, {"c": True}], "a:string,b:bigint,c:boolean"),
        ([{"\ue000": 1, "\U00010000": 1}], "\U00010000:bigint,\ue000:bigint"),
        ([{"a": None}], ""),
        ([{"a": None}, {"a": 1}], "a:bigint"),
        ([b'{"a": 9223372036854775807}'], "a:bigint"),
        ([b'{"a": 9223372036854775808}', b'{"a": 1}'], "a:decimal(38,0)"),
        ([b'{"a": 1000000000000000000000}'], "a:decimal(38,0)"),
        ([b'{"a": 1.0}'], "a:double"),
        ([b'{"a": 1}', b'{"a": 100.0}'], "a:double"),
        ([b'{"a": 1.0}', b'{"a": 9007199254740993}'], "a:decimal(38,0)"),
        ([b'{"a": [{"b": 1.0}]}'], "a:array<struct<b:double>>"),
        ([b'{"a": 1.5}', b'{"a": 1}'], "a:double"),
        ([b'{"a": 1e2}'], "a:double"),
        ([{"a": [{"x": 1}, {"y": 2.5}, None]}], "a:array<struct<x:bigint,y:double>>"),
        ([{"a": {"b": 1}}, {"a": {"c": [[]]}}, {"a": {"c": [["x"]]}}], "a:struct<b:bigint,c:array<array<string>>>"),
    ],
)
def test_a_type_for_each_field(documents, expected):
    assert columns(*documents) == (expected, {})


@pytest.mark.parametrize(
    ("documents", "expected", "kept_as_text"),
    [
        ([{"a": 1}, {"a": "x"}], "a:string", {"a": "mixed types"}),
        ([{"a": {}}, {"a": []}], "a:string", {"a": "mixed types"}),
        ([{"a": {}}], "a:string", {"a": "an object without fields"}),
        ([{"a": []}], "a:array<string>", {"a[]": "an array without values"}),
        ([b'{"a": 9007199254740993}', b'{"a": 1.5}'], "a:string", {"a": "mixed types"}),
        ([b'{"a": 0.12345678901234567890}'], "a:string", {}),
        ([b'{"a": 1e400}'], "a:string", {}),
        ([b'{"a": 123456789012345678901234567890123456789}'], "a:string", {}),
    ],
)
def test_what_no_column_holds_is_text(documents, expected, kept_as_text):
    assert columns(*documents) == (expected, kept_as_text)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"12",
        b"[]",
        b"{",
        b'{"a": 1} {}',
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": {"x": 1, "X": 2}}',
        b'{"a": "\\u0000"}',
        b'{"a": "\xff"}',
        b'{"a": ' + b"[" * MAX_LEVELS + b"]" * MAX_LEVELS + b"}",
        b"[" * 100_000,
    ],
)
def test_what_ingest_would_not_use_has_no_part_in_it(value):
    found = DocumentType()
    assert not found.add(value)
    assert found.columns()[0].names == []
