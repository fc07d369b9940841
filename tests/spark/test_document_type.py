"""The columns that documents give without Spark, against those that Spark finds in the same documents."""

from datetime import UTC, datetime

from hypothesis import strategies as st
from odd_values import anything, damaged, json_of, made, trips
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from streaming import RECORD_SCHEMA

from contract.errors import StreamgaugeError
from pipeline.formats.json_text import as_text, is_rounded
from pipeline.ingest.document_type import DocumentType
from pipeline.ingest.json_types import check_size, widened
from pipeline.ingest.records import type_of, usable
from pipeline.spark.session import session_config

AT = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = 5
"""How many documents have a type together, beside each by itself."""
names = st.sampled_from(["a", "b", "A", "ä", "a b", "\U00010000", "\ue000", "x.y"])
values = [*made(damaged(trips)), *made(damaged(json_of(st.dictionaries(names, anything, max_size=3)))), b'{"a": 100.0}', b'{"a": 5E-1}']


def by_spark(spark, size):
    """The columns of `size` documents each: {number of the first: columns and what is kept as text, or the error's type}. Also the usable ones."""
    records = spark.createDataFrame([(b"k", value, "t", 0, number, AT, AT) for number, value in enumerate(values)], RECORD_SCHEMA)
    documents = usable(records).select("document", "kafka_offset").where("document IS NOT NULL")
    seen, unrounded = (F.schema_of_variant_agg(F.parse_json(text)) for text in (F.col("document"), as_text(F.col("document"), is_rounded)))
    with session_config(spark, {"spark.sql.caseSensitive": "true"}):
        grouped = documents.groupBy(F.floor(F.col("kafka_offset") / size).alias("number")).agg(
            seen.alias("seen"), unrounded.alias("unrounded"), F.collect_list("kafka_offset").alias("offsets")
        )
        rows = grouped.collect()
    return {row.number: outcome(lambda row=row: columns(row)) for row in rows}, {number for row in rows for number in row.offsets}


def columns(row):
    kept_as_text = {}
    found = widened(T.StructType(), type_of(row.seen), kept_as_text, type_of(row.unrounded))
    check_size(found)
    return found, kept_as_text


def outcome(of):
    try:
        found, kept_as_text = of()
    except StreamgaugeError as error:
        return type(error)
    return found.jsonValue(), kept_as_text


def without_spark(size):
    types, used = {}, set()
    for number, value in enumerate(values):
        kind = types.setdefault(number // size, DocumentType())
        if value is not None and kind.add(value):
            used.add(number)
    return {number: outcome(kind.columns) for number, kind in types.items() if any(one // size == number for one in used)}, used


def test_each_document_has_the_columns_that_spark_finds(spark):
    (expected, usable_ones), (found, used) = by_spark(spark, 1), without_spark(1)
    assert [values[number] for number in sorted(usable_ones ^ used)] == []
    differences = {values[number]: (kind, found[number]) for number, kind in expected.items() if found[number] != kind}
    assert differences == {}
    assert len(usable_ones) > 200, "most values should be usable"


def test_documents_together_have_the_columns_that_spark_finds(spark):
    (expected, _), (found, _) = by_spark(spark, AT_ONCE), without_spark(AT_ONCE)
    differences = {
        number: (values[AT_ONCE * number : AT_ONCE * (number + 1)], kind, found[number])
        for number, kind in expected.items()
        if found[number] != kind
    }
    assert differences == {}
