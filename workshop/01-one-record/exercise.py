"""Lab 1: one record. Read workshop/01-one-record/README.md."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you will need it

from pipeline.domains.nest import DOCUMENT  # noqa: F401 - the schema of a document, for from_json


def sightings(records: DataFrame) -> DataFrame:
    """The people that cameras saw.

    records: the records of topic nest-logs. Column `value` (binary) holds a document in JSON.
    Returns device_id (string) and start_time (timestamp), a row for each camera that saw a person.
    """
    msg = (
        "decode `value` with the schema DOCUMENT, make a row of each camera, and return device_id and start_time of those that saw a person"
    )
    raise NotImplementedError(msg)
