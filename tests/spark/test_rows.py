"""The rows that the queries write, and their keys, are those that their topics declare."""

import json
import runpy

import pytest
from documents import ROOT
from foreign_rows import example
from pyspark.sql import functions as F  # noqa: N812

from contract.rows import json_decoder
from contract.settings import Settings
from pipeline.catalog import all_queries, is_new_version
from pipeline.sinks.topics import CompactedTopic

KEYS = {name: key for name, (key, _) in runpy.run_path(str(ROOT / "docs" / "topics.py"))["texts_below"]()}
WRITERS = [query for query in all_queries(Settings()) if isinstance(query.sink, CompactedTopic) and not is_new_version(query)]


def names_in(key):
    """The names in a key, written as the contract does."""
    return f"{{{','.join(f'{json.dumps(name)}:{names_in(of)}' if isinstance(of, dict) else json.dumps(name) for name, of in key.items())}}}"


@pytest.mark.parametrize("query", WRITERS, ids=lambda query: query.name)
def test_what_spark_writes_has_the_fields_that_the_topic_declares(spark, query):
    topic, columns = query.sink.topic, query.columns(spark)
    assert set(columns.names) == set(topic.row.names())
    row = spark.createDataFrame([(json.dumps(example(topic.name)),)], "text string").select(F.from_json("text", columns).alias("row"))
    record, *_ = query.sink.records(row.select("row.*")).collect()
    assert json_decoder(topic.row)(bytes(record.value, "utf-8")) == example(topic.name)
    assert names_in(json.loads(record.key)) == KEYS[topic.name]
