"""The commands for tables: query, derive, maintain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import continue_with_delta, is_delta_here
from infrastructure.output.format_option import RowFormatOption
from infrastructure.output.terminal import out
from infrastructure.settings import Settings

if TYPE_CHECKING:  # importing Spark takes a second or more
    from pyspark.sql import SparkSession

    from pipeline.lake.tables import Table

SAFE_RETENTION_SECONDS = 7 * 86_400


def query(
    sql: Annotated[str | None, typer.Argument(help="one query; without it, the tables are listed", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many rows to print at most")] = 1000,
    output_format: RowFormatOption = "table",
) -> None:
    """Query tables and result topics by SQL, or list them. Only queries are allowed."""
    from infrastructure.output.row_formats import Rows, show
    from pipeline.lake.ad_hoc_sql import answer
    from pipeline.lake.sql_tables import sql_tables
    from pipeline.spark.session import running_session

    settings = Settings.from_environment()
    tables = sql_tables(settings)
    _continue_for(tables)
    with running_session(settings) as spark:
        if sql is None:
            rows = Rows(["table", "format", "path", "columns"], [_described(table, spark) for table in tables])
        else:
            rows = answer(spark, sql, tables, limit)
    show(rows, output_format, limit)


def derive(
    name: Annotated[list[str] | None, typer.Argument(help="derived tables by name; all without one", show_default=False)] = None,
    check: Annotated[bool, typer.Option("--check", help="only compare each table with its query")] = False,  # noqa: FBT002 - an option
) -> None:
    """Write the tables that SQL files derive from other tables. It reads data/tables/*.sql in the current folder and in the installation. Exit code 1 if --check finds a difference."""
    continue_with_delta("derive")
    from pipeline.lake import derived_tables
    from pipeline.spark.session import running_session

    settings, chosen = Settings.from_environment(), derived_tables.queries(name or [])
    with running_session(settings) as spark:
        outcomes = {table: derived_tables.derive(table, sql, spark, settings, only_compare=check) for table, sql in chosen.items()}
    for table, outcome in outcomes.items():
        out.print(f"derived_{table}: {outcome}")
    raise typer.Exit("different" in outcomes.values())


def maintain(
    table: Annotated[list[str] | None, typer.Argument(help="tables by name; all without one", show_default=False)] = None,
    retain: Annotated[str, typer.Option(metavar="DURATION", help="how long to keep files that no longer belong to a table")] = "7 days",
    allow_short_retention: Annotated[bool, typer.Option("--allow-short-retention", help="allow a --retain below 7 days")] = False,  # noqa: FBT002
) -> None:
    """Compact Delta tables, and delete their unused files. This is safe while queries run."""
    from infrastructure import durations

    retain_seconds = durations.seconds(retain, "--retain")
    if retain_seconds < SAFE_RETENTION_SECONDS and not allow_short_retention:
        msg = f"--retain {retain!r} is less than 7 days. Deleted files cannot be restored: time travel further back fails, and so do queries that began before and streams that read the table and are further behind. If none of this applies, add --allow-short-retention"
        raise StreamgaugeError(msg)
    from pipeline.lake.tables import named_tables

    settings = Settings.from_environment()
    chosen = named_tables(table or [], settings)
    due, failures = [lake_table for lake_table in chosen if lake_table.format == "delta"], []
    if due:  # first: the command begins again in that environment
        continue_with_delta("maintain")
    for lake_table in chosen:
        if lake_table.format == "parquet":
            out.print(
                f"{lake_table.name} (parquet): left alone; only Delta tables are compacted, so run the archive as one: `streamgauge run <archive>-delta`",
            )
    if not due:
        return
    from pipeline.lake.maintenance import maintain_table
    from pipeline.spark.session import running_session

    with running_session(settings) as spark:
        for lake_table in due:
            try:
                out.print(maintain_table(lake_table, spark, settings, retain_seconds))
            except StreamgaugeError as error:  # the others are maintained all the same
                failures.append(str(error))
    if failures:
        raise StreamgaugeError("; ".join(failures))


def _continue_for(tables: "Sequence[Table]") -> None:
    """Continues in the environment with Delta if it is installed and there are Delta tables. Without it, the other tables can be read."""
    if is_delta_here() and any(table.format == "delta" for table in tables):
        continue_with_delta("a Delta table")


def _described(table: "Table", spark: "SparkSession") -> list[str]:
    """A row for the list of tables; an unreadable table is listed with its error."""
    try:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in table.columns(spark).fields)
    except StreamgaugeError as error:
        columns = str(error)
    return [table.name, table.format, str(table.path), columns]
