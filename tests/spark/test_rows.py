"""The rows that the queries write, and their keys, are those that their topics declare."""

import json
import runpy

import pytest
from documents import ROOT
from foreign_rows import WINDOW, example
from pyspark.sql import functions as F  # noqa: N812

from contract.topics import ALERTS
from infrastructure.rows import json_decoder
from infrastructure.settings import Settings
from pipeline.catalog import all_queries, is_new_version
from pipeline.sinks.topics import AlertsTopic, CompactedTopic

KEYS = {name: key for name, (key, _) in runpy.run_path(str(ROOT / "docs" / "topics.py"))["texts_below"]()}
WRITERS = [query for query in all_queries(Settings()) if isinstance(query.sink, CompactedTopic | AlertsTopic) and not is_new_version(query)]


def names_in(key):
    """The names in a key, written as the contract does."""
    return f"{{{','.join(f'{json.dumps(name)}:{names_in(of)}' if isinstance(of, dict) else json.dumps(name) for name, of in key.items())}}}"


@pytest.mark.parametrize("query", WRITERS, ids=lambda query: query.name)
def test_what_spark_writes_has_the_fields_and_the_key_that_the_topic_declares(spark, query):
    topics, columns = {topic.name: topic for topic in query.sink.topics}, query.columns(spark)
    row = dict.fromkeys(columns.names, "text") | {"window": WINDOW} | example(query.sink.topic.name)
    rows = spark.createDataFrame([(json.dumps(row),)], "text string").select(F.from_json("text", columns).alias("row")).select("row.*")
    written = query.sink.records(rows).collect()
    assert len(written) == len(topics)
    for record in written:
        topic = topics[record.topic if "topic" in record else query.sink.topic.name]
        fields = set(topic.row.names())
        assert set(json.loads(record.value)) == fields <= set(columns.names)
        assert json_decoder(topic.row)(record.value.encode()) == {name: row[name] for name in fields}
        assert topic is ALERTS or names_in(json.loads(record.key)) == KEYS[topic.name]
