"""The rows that the queries write are those that their topics declare."""

import json

import pytest
from foreign_rows import example
from pyspark.sql import functions as F  # noqa: N812

from contract.rows import json_decoder
from contract.settings import Settings
from pipeline.catalog import all_queries, is_new_version
from pipeline.sinks.topics import CompactedTopic

WRITERS = [query for query in all_queries(Settings()) if isinstance(query.sink, CompactedTopic) and not is_new_version(query)]


@pytest.mark.parametrize("query", WRITERS, ids=lambda query: query.name)
def test_what_spark_writes_has_the_fields_that_the_topic_declares(spark, query):
    topic, columns = query.sink.topic, query.columns(spark)
    assert set(columns.names) == set(topic.row.names())
    row = spark.createDataFrame([(json.dumps(example(topic.name)),)], "text string").select(F.from_json("text", columns).alias("row"))
    record, *_ = query.sink.records(row.select("row.*")).collect()
    assert json_decoder(topic.row)(bytes(record.value, "utf-8")) == example(topic.name)
