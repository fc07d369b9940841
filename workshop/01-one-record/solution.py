"""Lab 1: one record, solved."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.domains.nest import DOCUMENT


def sightings(records: DataFrame) -> DataFrame:
    """The people that cameras saw.

    records: the records of topic nest-logs. Column `value` (binary) holds a document in JSON.
    Returns device_id (string) and start_time (timestamp), a row for each camera that saw a person.
    """
    documents = records.select(F.from_json(F.col("value").cast("string"), DOCUMENT).alias("document"))
    cameras = documents.select(F.explode("document.devices.cameras").alias("camera_id", "camera"))
    return cameras.where("camera.last_event.has_person").select(
        F.coalesce("camera.device_id", "camera_id").alias("device_id"),
        F.col("camera.last_event.start_time").alias("start_time"),
    )
