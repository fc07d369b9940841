"""The commands about the tables of the lake: query, maintain."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings

if TYPE_CHECKING:  # Spark takes a second or more to import
    from pyspark.sql import SparkSession

    from pipeline.lake import LakeTable

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


def query(
    sql: Annotated[str | None, typer.Argument(help="one query; without it: which tables there are", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many rows to print at most")] = 1000,
    output_format: Annotated[str, typer.Option("--format", help="table, csv or json")] = "table",
) -> None:
    """Ask the tables of the lake by SQL, or list them. Nothing but a query is taken."""
    from pipeline import row_formats
    from pipeline.ad_hoc_sql import answer
    from pipeline.lake import existing_tables
    from pipeline.session import spark_session, stopping

    if output_format not in row_formats.FORMATS:
        msg = f"--format {output_format}; expected one of {', '.join(row_formats.FORMATS)}"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    there_are = existing_tables(settings)  # before Spark starts
    spark = spark_session(settings)
    try:
        with stopping(spark, lambda: False):
            if sql is None:
                columns, rows, is_cut = ["table", "format", "path", "columns"], [_described(table, spark) for table in there_are], False
            else:
                found = answer(spark, sql, there_are, limit)
                columns, rows, is_cut = found.columns, found.rows, found.is_cut
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if output_format == "table":
        Console(highlight=False).print(row_formats.as_table(columns, rows))
    else:
        formatted = row_formats.as_json if output_format == "json" else row_formats.as_csv
        sys.stdout.write(formatted(columns, rows) + "\n")
    if is_cut:
        err.print(f"these are the first {limit} rows, and there are more: --limit takes another number", markup=False)


def _described(table: "LakeTable", spark: "SparkSession") -> list[str]:
    """One table that cannot be read is no reason not to list the others."""
    try:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in table.rows(spark).schema.fields)
    except StreamgaugeError as error:
        columns = str(error)
    return [table.name, table.format, str(table.path), columns]
