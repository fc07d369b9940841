"""Lab 9: tables. Read workshop/09-tables/README.md."""

from delta.tables import DeltaTable  # noqa: F401 - you will need it
from pyspark.sql import DataFrame, SparkSession, Window  # noqa: F401 - you may need Window
from pyspark.sql import functions as F  # noqa: F401 - you will need it


def upsert(records: DataFrame, path: str) -> None:
    """Merge a batch of records into the Delta table at `path`: the newest record of each key. The first batch creates the table.

    records: key (string), value (string), offset (long); of one partition. A null value deletes the key's row. The table has the same columns.
    """
    msg = "take the newest record of each key in the batch, and merge it into the table: update, insert or delete"
    raise NotImplementedError(msg)


def compact(spark: SparkSession, path: str) -> None:
    """Rewrite the small files of the table as one."""
    msg = "rewrite the small files of the table as one"
    raise NotImplementedError(msg)


def as_of(spark: SparkSession, path: str, version: int) -> DataFrame:
    """The table as it was at `version`."""
    msg = "read the table as it was at `version`"
    raise NotImplementedError(msg)
