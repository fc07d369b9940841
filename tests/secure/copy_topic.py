"""Copies topic nest-logs to compacted topics by Spark, in a process of its own: a JVM knows one realm. The checks of `run` are librdkafka's.

Takes {topic: the client's properties file} as JSON, and prints {topic: how many rows were read back}.
"""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from contract.domains.nest import NEST_LOGS
from contract.topics import compacted_topic
from infrastructure.settings import Settings
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import kafka_options, records_from, stream_of_records
from pipeline.spark.session import spark_session

spark, counts = spark_session(Settings.from_environment()), {}
for name, properties in json.load(sys.stdin).items():
    target, settings = compacted_topic(name), replace(Settings.from_environment(), kafka_client_properties=Path(properties))
    rows = stream_of_records(spark, settings, {"subscribe": NEST_LOGS.name}).selectExpr("offset", "cast(value as string) as text")
    to_kafka = CompactedTopic(target, ("text",)).records(rows).writeStream.format("kafka").options(**kafka_options(settings), topic=name)
    with tempfile.TemporaryDirectory() as checkpoint:
        to_kafka.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    counts[name] = records_from(spark, settings, {"subscribe": name}).count()
spark.stop()
json.dump(counts, sys.stdout)
