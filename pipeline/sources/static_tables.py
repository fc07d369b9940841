"""Static tables that streams are joined with, from `data/`."""

from dataclasses import dataclass
from typing import cast

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - as PySpark's own documentation names it

from contract.errors import StreamgaugeError
from contract.storage.data_files import data_file


def fields_of(ddl: str) -> T.StructType:
    """The struct of columns that `ddl` names, e.g. "device_id string, zip_code string"."""
    return cast("T.StructType", T.StructType.fromDDL(ddl))


@dataclass(frozen=True)
class StaticTable:
    """A CSV file of `data/` with the columns it must have, and the one that no two rows share."""

    file: str
    schema: str
    unique: str

    def load(self, spark: SparkSession) -> DataFrame:
        """The table, as a local relation: a file would be read again, to be broadcast, in every micro-batch.

        Raises StreamgaugeError when a column is missing or two rows have the same `unique` value: a join would double rows.
        """
        schema = fields_of(self.schema)
        types = {field.name: "int32" if isinstance(field.dataType, T.IntegerType) else "str" for field in schema}
        rows = pd.read_csv(data_file(self.file), dtype=types, keep_default_na=False)  # "N/A" is a borough of TLC's, not a null
        missing = [field.name for field in schema if field.name not in rows.columns]
        if missing:
            msg = f"data/{self.file} has columns {', '.join(rows.columns)}; {', '.join(missing)} expected too: add the column"
            raise StreamgaugeError(msg)
        repeated = rows.loc[rows[self.unique].duplicated(), self.unique]
        if not repeated.empty:
            msg = f"data/{self.file} has {self.unique} {repeated.iloc[0]} more than once; expected once: remove the other rows"
            raise StreamgaugeError(msg)
        return spark.createDataFrame(rows[schema.names], schema)
