"""Static tables in `data/`, which streams are joined with."""

from dataclasses import dataclass
from typing import cast

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - as PySpark's own documentation names it

from contract.errors import StreamgaugeError
from contract.storage.data_files import data_file

UNKNOWN = "unknown"
"""The zip code of what a table has no row of."""


def fields_of(ddl: str) -> T.StructType:
    """The columns in `ddl`, e.g. "device_id string, zip_code string", as a struct."""
    return cast("T.StructType", T.StructType.fromDDL(ddl))


@dataclass(frozen=True)
class StaticTable:
    """A CSV file in `data/`. schema: the columns it must have. unique: the column without duplicate values."""

    file: str
    schema: str
    unique: str

    def load(self, spark: SparkSession) -> DataFrame:
        """The table as a local relation: Spark would read and broadcast a file again in every micro-batch.

        Raises KeyError when a column is missing, and StreamgaugeError when `unique` has duplicates, which would duplicate rows in a join.
        """
        schema = fields_of(self.schema)
        types = {field.name: "int32" if isinstance(field.dataType, T.IntegerType) else "str" for field in schema}
        rows = pd.read_csv(data_file(self.file), dtype=types, keep_default_na=False)  # "N/A" is a borough, not a null
        repeated = rows.loc[rows[self.unique].duplicated(), self.unique]
        if not repeated.empty:
            msg = f"data/{self.file} has {self.unique} {repeated.iloc[0]} more than once; expected once: remove the other rows"
            raise StreamgaugeError(msg)
        return spark.createDataFrame(rows[schema.names], schema)
