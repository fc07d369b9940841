"""Copies topic nest-logs to nest-camera-stats by Spark, in a process of its own: a JVM knows one realm. The checks of `run` are librdkafka's."""

import sys
import tempfile

from contract.domains.nest import NEST_CAMERA_STATS, NEST_LOGS
from contract.settings import Settings
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import kafka_options, records_from, stream_of_records
from pipeline.spark.session import spark_session

settings = Settings.from_environment()
spark = spark_session(settings)
rows = stream_of_records(spark, settings, {"subscribe": NEST_LOGS.name}).selectExpr("offset", "cast(value as string) as text")
to_kafka = (
    CompactedTopic(NEST_CAMERA_STATS, ("text",))
    .records(rows)
    .writeStream.format("kafka")
    .options(**kafka_options(settings), topic=NEST_CAMERA_STATS.name)
)
with tempfile.TemporaryDirectory() as checkpoint:
    to_kafka.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
count = records_from(spark, settings, {"subscribe": NEST_CAMERA_STATS.name}).count()
spark.stop()
sys.stdout.write(f"{count} rows read back\n")
