"""Tables derived from other tables, each by the query in its file `data/tables/<name>.sql`, in the current folder or beside Streamgauge.

A table is replaced as a whole, by one commit of Delta: joins, averages and the rows that `expire` deletes cannot be followed by changes alone.
"""

from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file
from pipeline.lake.ad_hoc_sql import query_result
from pipeline.lake.sql_tables import sql_tables

if HAS_DELTA:
    from delta.tables import DeltaTable

FOLDER = "derived"
"""The folder in the lake, and so the first part of the tables' names."""
OWN = Path("data", "tables")
"""Where a user's own queries are: in the current folder, because Streamgauge may be installed where its user cannot write."""
Outcome = Literal["created", "unchanged", "replaced", "different"]


def derive(name: str, sql: str, spark: SparkSession, settings: Settings, *, only_compare: bool = False) -> Outcome:
    """Replaces the table of that name if the query `sql` now returns other rows; otherwise writes nothing.

    only_compare: writes nothing in any case. Raises StreamgaugeError as `query_result`.
    """
    path = str(settings.lake / FOLDER / name)
    # No table is derived from derived ones: their order would be a matter of their names.
    sources = [table for table in sql_tables(settings) if not table.name.startswith(f"{FOLDER}_")]
    with query_result(spark, sql, sources) as result:
        fresh = result.persist()
        try:
            is_there = DeltaTable.isDeltaTable(spark, path)
            if is_there and _are_equal(fresh, spark.read.format("delta").load(path)):
                return "unchanged"
            if only_compare:
                return "different"
            fresh.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
            return "replaced" if is_there else "created"
        finally:
            fresh.unpersist()


def queries(names: list[str]) -> dict[str, str]:
    """The queries of the tables of these names, or of all, by name. Raises StreamgaugeError for an unknown name.

    Of two files of a name, the one in the current folder counts.
    """
    path_by_name = {path.stem: path for folder in (data_file("tables"), OWN) for path in sorted(folder.glob("*.sql"))}
    check_names("derived table", names, path_by_name)
    return {name: _text(path_by_name[name]) for name in names or path_by_name}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        msg = f"{path} cannot be read: {why}; expected a query in SQL"
        raise StreamgaugeError(msg) from error


def _are_equal(first: DataFrame, second: DataFrame) -> bool:
    are_columns = [(field.name, field.dataType) for field in first.schema] == [(field.name, field.dataType) for field in second.schema]
    return are_columns and first.exceptAll(second).isEmpty() and second.exceptAll(first).isEmpty()
