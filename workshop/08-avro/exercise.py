"""Lab 8: Avro. Read workshop/08-avro/README.md."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you will need it
from pyspark.sql.avro.functions import from_avro  # noqa: F401 - you will need it


def edits(records: DataFrame, schemas: dict[int, str], reader: str) -> DataFrame:
    """Decodes values in the Confluent wire format.

    records: offset, value (binary). schemas: what the registry has, by id: the schema that a value was written with. reader: the schema to read to.
    Returns offset, title, before, after, bot; all but offset are null if the value cannot be read.
    """
    msg = "cut off the five bytes before the payload, and decode each value with the schema whose id they hold"
    raise NotImplementedError(msg)
