"""The commands for the tables of the lake: query, maintain."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from contract.errors import StreamgaugeError
from contract.output_format import RowFormat, RowFormatOption
from contract.process.stop_signals import stop_requested
from contract.settings import Settings

if TYPE_CHECKING:  # importing Spark takes a second or more
    from pyspark.sql import SparkSession

    from pipeline.lake.tables import LakeTable

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
END_SECONDS = 4
SAFE_RETENTION_SECONDS = 7 * 86_400
SHORT_RETENTION_BREAKS = (
    "time travel further back fails, and so do queries that began before and streams that read the table and are further behind"
)


def query(
    sql: Annotated[str | None, typer.Argument(help="one query; without it: which tables there are", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many rows to print at most")] = 1000,
    output_format: RowFormatOption = RowFormat.TABLE,
) -> None:
    """Query the tables of the lake by SQL, or list them. Only queries are allowed."""
    from pipeline.lake import row_formats
    from pipeline.lake.ad_hoc_sql import answer
    from pipeline.lake.tables import existing_tables
    from pipeline.spark.session import running_session

    settings = Settings.from_environment()
    there_are = existing_tables(settings)  # fail before Spark starts if there are none
    try:
        with running_session(settings) as spark:
            if sql is None:
                columns, rows, is_cut = ["table", "format", "path", "columns"], [_described(table, spark) for table in there_are], False
            else:
                found = answer(spark, sql, there_are, limit)
                columns, rows, is_cut = found.columns, found.rows, found.is_cut
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if output_format is RowFormat.TABLE:
        Console(highlight=False).print(row_formats.as_table(columns, rows))
    else:
        formatted = row_formats.as_json if output_format is RowFormat.JSON else row_formats.as_csv
        sys.stdout.write(formatted(columns, rows) + "\n")
    if is_cut:
        err.print(f"these are the first {limit} rows, and there are more: --limit takes another number", markup=False)


def maintain(
    table: Annotated[list[str] | None, typer.Argument(help="tables by name; all without one", show_default=False)] = None,
    retain: Annotated[str, typer.Option(metavar="DURATION", help="keep files that no longer belong to a table for so long")] = "7 days",
    allow_short_retention: Annotated[bool, typer.Option("--allow-short-retention", help="let --retain be below 7 days")] = False,  # noqa: FBT002
    every: Annotated[
        str | None, typer.Option(metavar="DURATION", help='go on, with a round each "1 hour", the first after the first hour')
    ] = None,
) -> None:
    """Compact many small files of Delta tables and delete unused ones. Safe while queries run."""
    from contract import durations

    retain_seconds = durations.seconds(retain, "--retain")
    if retain_seconds < SAFE_RETENTION_SECONDS and not allow_short_retention:
        msg = f"--retain {retain!r} is below 7 days. What it deletes cannot be had back: {SHORT_RETENTION_BREAKS}. If nothing of this is so: --allow-short-retention"
        raise StreamgaugeError(msg)
    if every is not None:
        options = ["--retain", retain, *(["--allow-short-retention"] if allow_short_retention else [])]
        _maintain_again_and_again(durations.seconds(every, "--every"), [*(table or []), *options])
        return
    from pipeline.lake.tables import named_tables

    settings = Settings.from_environment()
    chosen = named_tables(table or [], settings)
    if retain_seconds < SAFE_RETENTION_SECONDS:
        err.print(f"warning: files are kept for {retain} only: {SHORT_RETENTION_BREAKS}", markup=False)
    try:
        failures = _maintain(chosen, settings, retain_seconds)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if failures:
        raise StreamgaugeError("; ".join(failures))


def _maintain(chosen: "list[LakeTable]", settings: Settings, retain_seconds: float) -> list[str]:
    """Prints a line per table and returns the error messages. A table that fails does not stop the others."""
    for one in chosen:
        if one.format == "parquet":
            out.print(
                f"{one.name} (parquet): left alone; only Delta tables are compacted, so run the archive as one: `streamgauge run <archive>-delta`",
                markup=False,
            )
    due = [one for one in chosen if one.format == "delta"]
    if not due:
        return []
    from pipeline.lake import maintenance
    from pipeline.spark.session import running_session

    failures = []
    with contextlib.ExitStack() as open_until_done:
        with _stdout_is_stderr():  # the JVM inherits standard output, and VACUUM prints to it
            spark = open_until_done.enter_context(running_session(settings))
        for one in due:
            try:
                out.print(str(maintenance.maintain(one, spark, settings, retain_seconds)), markup=False)
            except maintenance.LeftAlone as error:
                out.print(f"{one.name} ({one.format}): {error}", markup=False)
            except StreamgaugeError as error:
                failures.append(str(error))
    return failures


def _maintain_again_and_again(seconds_between: float, arguments: list[str]) -> None:
    """Runs each round in its own process, so that Spark uses memory only during a round."""
    from contract.process.rounds import repeat

    stop = stop_requested()

    def work() -> None:
        if not _is_anything_to_do():
            return
        child = subprocess.Popen([sys.executable, "-m", "streamgauge.cli", "maintain", *arguments])
        while child.poll() is None:
            if stop.wait(0.2):
                child.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(END_SECONDS)
                child.kill()

    repeat(work, seconds_between, stop, lambda line: err.print(line, markup=False), at_once=False)


def _is_anything_to_do() -> bool:
    """Whether there is a table. Raises StreamgaugeError when it cannot reach the lake's object store."""
    from pipeline.lake.folders import table_folders

    return any(table_folders(Settings.from_environment().lake))


@contextlib.contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """Redirects standard output to standard error, also for processes started meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _described(table: "LakeTable", spark: "SparkSession") -> list[str]:
    """A row for the list of tables; an unreadable table is listed with its error."""
    try:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in table.rows(spark).schema.fields)
    except StreamgaugeError as error:
        columns = str(error)
    return [table.name, table.format, str(table.path), columns]
