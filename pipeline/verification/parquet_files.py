"""The rows of a Parquet table according to Spark's metadata log: each row once, without rows of unfinished batches."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from pipeline.spark.log import live_entries, path_of
from pipeline.verification.outcome import first_of


@dataclass(frozen=True)
class ParquetFiles:
    """A table of Parquet files in `folder`, read with the current columns of its rows. Columns that older files lack are null."""

    spark: SparkSession
    folder: Path
    schema: T.StructType

    def rows(self, *, but_unreadable: bool = False) -> DataFrame:
        """The rows of the files that still exist. but_unreadable: also skips files that are not valid Parquet."""
        if not (self.folder / "_spark_metadata").exists():
            return self.spark.createDataFrame([], self.schema)
        options = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": str(but_unreadable).lower()}
        return self.spark.read.schema(self.schema).options(**options).parquet(str(self.folder))

    def files(self) -> list[Path]:
        """The files in the log: those of its newest summary, written every ten batches, and of the batches since."""
        return [path_of(entry["path"]) for entry in live_entries(self.folder / "_spark_metadata")]

    def unreadable(self, failure: str) -> list[Path]:
        """Existing files that are not valid Parquet or were replaced. failure: Spark's error message, which may name one."""
        broken = [path for path in self.files() if path.exists() and not _is_parquet(path)]
        named = [path_of(name) for name in re.findall(r"file:/+[^\s]+\.parquet", failure)[:1]]
        return broken + [path for path in named if path not in broken]

    def faults(self, what: str, paths: Sequence[Path]) -> list[str]:
        """One line that names the first paths and says that they are `what`. Empty without paths."""
        shown = [path.relative_to(self.folder) if path.is_relative_to(self.folder) else path for path in paths]
        return [f"files of the table that are {what}, {len(paths)}: {first_of(shown)}"] if paths else []


def is_of_files(failure: str) -> bool:
    """Whether Spark failed because a file could not be read."""
    return any(sign in failure for sign in ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER"))


def _is_parquet(path: Path) -> bool:
    try:
        pyarrow.parquet.read_table(path)
    except Exception:
        return False
    return True
