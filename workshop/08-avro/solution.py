"""Lab 8: Avro, solved."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro


def edits(records: DataFrame, schemas: dict[int, str], reader: str) -> DataFrame:
    """Decodes values in the Confluent wire format.

    records: offset, value (binary). schemas: what the registry has, by id: the schema that a value was written with. reader: the schema to read to.
    Returns offset, title, before, after, bot; all but offset are null if the value cannot be read.
    """
    payload = F.substring("value", 6, 2**31 - 1)
    options = {"mode": "PERMISSIVE", "avroSchema": reader}
    branches = (
        F.when(F.substring("value", 1, 5) == F.lit(prefix(number)), from_avro(payload, schema, options))
        for number, schema in schemas.items()
    )
    event = F.coalesce(*branches)
    return records.select("offset", event.alias("edit")).select("offset", "edit.title", "edit.before", "edit.after", "edit.bot")


def prefix(schema_id: int) -> bytes:
    """A zero byte, and the id in four bytes, big-endian."""
    return b"\x00" + schema_id.to_bytes(4, "big")
