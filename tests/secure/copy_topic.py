"""Copies topic nest-logs to a compacted topic, the argument, by Spark, in a process of its own: a JVM knows one realm. The checks of `run` are librdkafka's."""

import sys
import tempfile

from contract.domains.nest import NEST_LOGS
from contract.settings import Settings
from contract.topics import compacted_topic
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import kafka_options, records_from, stream_of_records
from pipeline.spark.session import spark_session

target = compacted_topic(sys.argv[1])
settings = Settings.from_environment()
spark = spark_session(settings)
rows = stream_of_records(spark, settings, {"subscribe": NEST_LOGS.name}).selectExpr("offset", "cast(value as string) as text")
to_kafka = CompactedTopic(target, ("text",)).records(rows).writeStream.format("kafka").options(**kafka_options(settings), topic=target.name)
with tempfile.TemporaryDirectory() as checkpoint:
    to_kafka.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
count = records_from(spark, settings, {"subscribe": target.name}).count()
spark.stop()
sys.stdout.write(f"{count} rows read back\n")
