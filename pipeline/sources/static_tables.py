"""Static tables, which streams are joined with."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - as PySpark's own documentation names it

from contract.static_tables import files_of
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

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

    def load(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """The table as a local relation: Spark would read and broadcast a file again in every micro-batch.

        settings: those that may name files in place of that one.

        Raises StreamgaugeError when a file cannot be read or lacks a column, and when `unique` has duplicates, which would duplicate rows in
        a join.
        """
        files, schema = files_of(Path(self.file).stem, settings), fields_of(self.schema)
        try:
            rows = pd.concat([_read(file, schema) for file in files])
        except (OSError, ValueError, OverflowError) as error:  # ValueError: also pandas's own errors
            msg = f"static table {Path(self.file).stem} cannot be read ({str(error).partition(chr(10))[0]}); expected CSV with the columns {self.schema}"
            raise StreamgaugeError(msg) from error
        repeated = rows.loc[rows[self.unique].duplicated(), self.unique]
        if not repeated.empty:
            msg = f"{', '.join(map(str, files))}: {self.unique} {repeated.iloc[0]} is there more than once; expected once: remove the other rows"
            raise StreamgaugeError(msg)
        return spark.createDataFrame(rows[schema.names], schema)


def _read(file: Path, schema: T.StructType) -> pd.DataFrame:
    numbers = [column.name for column in schema if isinstance(column.dataType, T.IntegerType)]
    types = {name: "int64" if name in numbers else "str" for name in schema.names}  # as int32, pandas would drop the higher bits
    rows = pd.read_csv(file, dtype=types, usecols=schema.names, keep_default_na=False)  # "N/A" is a borough, not a null
    for name in numbers:
        if not rows[name].between(-(2**31), 2**31 - 1).all():
            msg = f"{file}: {name} has a number of more than 32 bits"
            raise ValueError(msg)
    return rows.astype(dict.fromkeys(numbers, "int32"))
