"""The commands of the pipeline: run, ingest, reset, state."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import continue_with_delta
from infrastructure.output.format_option import FormatOption
from infrastructure.output.terminal import err, out
from infrastructure.process.stop_signals import StopRequest, end_at_once, stop_requested
from infrastructure.settings import Settings

if TYPE_CHECKING:  # importing Spark takes a second or more
    from pyspark.sql import SparkSession

    from pipeline.query import Query

Mode = Literal["append", "update", "complete"]


def run(
    query: Annotated[list[str] | None, typer.Argument(help="queries by name; all without one", show_default=False)] = None,
    once: Annotated[bool, typer.Option("--once", help="process the available records and end")] = False,  # noqa: FBT002 - an option of the command line
    mode: Annotated[Mode | None, typer.Option(help="the output mode, instead of the query's own")] = None,
    console: Annotated[bool, typer.Option("--console", help="print the rows of each batch, by window, instead of writing them")] = False,  # noqa: FBT002
) -> None:
    """Run queries continuously, or --once over the records that are there."""
    from infrastructure.kafka.errors import raise_if_access_denied
    from pipeline.catalog import chosen, create_topics_of_new_versions
    from pipeline.running.runner import Runner

    named = query or []
    if (mode or console) and not named:
        msg = "--mode and --console require the names of queries: streamgauge run nest-camera-stats --mode complete"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    to_run = chosen(named, settings)
    if mode is not None:
        to_run = [query.in_mode(mode) if query.name in named else query for query in to_run]
    if console:
        to_run = [query.on_console() for query in to_run if query.name in named]
    _continue_for(to_run, settings)
    raise_if_access_denied(settings.kafka)
    if not console:
        create_topics_of_new_versions(to_run, settings)
    in_real_time = not once and any(query.real_time for query in to_run)
    with _session(settings, once=once, in_real_time=in_real_time) as (spark, stop):
        # The dead letters of a named query may be written by another process.
        letters = [query.name for query in to_run if named and query.name not in named]
        Runner(spark, settings, err.print, stop, once=once).run(to_run, unless_running=letters)


def ingest(
    topic: Annotated[str, typer.Argument(help="a topic whose records have a JSON object as value")],
    once: Annotated[bool, typer.Option("--once/--continuous", help="process the available records and end, or continue")] = False,  # noqa: FBT002 - an option
    append: Annotated[bool, typer.Option("--append", help="add a row for each record, as for a topic without keys")] = False,  # noqa: FBT002
    infer_schema: Annotated[bool, typer.Option("--infer-schema", help="infer new fields and types again, and print them")] = False,  # noqa: FBT002
    debug: Annotated[bool, typer.Option("--debug", help="use a separate table; show columns, rows and Spark's plan first")] = False,  # noqa: FBT002
) -> None:
    """Merge a topic into a Delta table: one row per key, the newest record wins, a null value deletes. Or, with --append, one row per record."""
    continue_with_delta("ingest")
    from pipeline.catalog import create_topics_of_ingests
    from pipeline.ingest.inference import infer, introduce, sample
    from pipeline.ingest.location import Location, TableSchema
    from pipeline.ingest.upsert import queries_of
    from pipeline.lake.names import check_names_of
    from pipeline.running.runner import Runner
    from pipeline.sources.kafka import source_partitions

    settings = Settings.from_environment()
    location = Location.of(topic, settings, debug=debug, append=append)
    to_run = queries_of(topic, debug=debug, append=location.append)
    check_names_of(location, settings)
    source_partitions(settings, topic)  # fail before Spark starts if Kafka cannot be reached, or the topic is missing
    if not debug:
        create_topics_of_ingests(settings)
    checkpoint = to_run[0].checkpoint_name.folder(settings)
    for line in introduce(location, checkpoint):
        err.print(line)
    with _session(settings, once=once) as (spark, stop):
        if infer_schema or TableSchema.read(location.schema) is None:
            for line in infer(spark, location, settings, checkpoint):
                err.print(line)
        if debug:
            for line in sample(spark, location, settings):
                err.print(line)
        Runner(spark, settings, err.print, stop, once=once).run(to_run)


def reset(
    query: Annotated[str, typer.Argument(help="a query by name")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,  # noqa: FBT002 - an option of the command line
) -> None:
    """Delete the checkpoints and results of a stopped query, so that it recounts from the start."""
    from infrastructure.storage.removal import confirm
    from pipeline.running.reset import delete, deletions, locked_checkpoints, named

    settings = Settings.from_environment()
    chosen = named(query, settings)
    with locked_checkpoints(chosen, settings):
        to_delete = deletions(chosen, settings)
        if not to_delete:
            out.print(f"nothing to delete: {query} is as before its first run")
            return
        for deletion in to_delete:
            out.print(deletion.description)
        if chosen.sink.is_kept:
            out.print(f"note: what is in {chosen.sink.place} stays; the next run writes it again, with the same keys")
        for note in chosen.source.reset_notes(settings):
            out.print(f"note: {note}")
        confirm(f"delete this, so that {query} recounts from the start at its next run?", yes=yes)
        delete(chosen, settings, to_delete)
    out.print(f"deleted; {query} recounts from the start at its next run")


def state(
    query: Annotated[str, typer.Argument(help="a query by name; or a checkpoint, such as nest-camera-stats-v1-complete")],
    rows: Annotated[bool, typer.Option("--rows", help="show keys and values")] = False,  # noqa: FBT002 - an option of the command line
    key: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="show only what has TEXT in a field of its key; can be repeated")
    ] = None,
    timers: Annotated[bool, typer.Option("--timers", help="show the pending timers")] = False,  # noqa: FBT002
    batch: Annotated[int | None, typer.Option(min=0, metavar="N", help="the state after batch N, instead of the last one")] = None,
    changes: Annotated[tuple[int, int] | None, typer.Option(metavar="FIRST LAST", help="show what batches FIRST to LAST changed")] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many rows to show at most")] = 20,
    output_format: FormatOption = "table",
) -> None:
    """Show what a query keeps between batches, also while it runs: operators, rows, bytes; keys and values; timers; changes."""
    from contract.checkpoints.contents import Checkpoint
    from contract.checkpoints.names import CheckpointName
    from infrastructure.output.row_formats import show
    from pipeline.checkpoint.state import State, readable_batches
    from pipeline.running.reset import named
    from pipeline.spark.session import running_session

    if changes is not None and (batch is not None or timers or changes[0] > changes[1]):
        msg = "--changes expects FIRST not after LAST, and cannot be used with --batch or --timers"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    name = CheckpointName.of(query) or named(query, settings).checkpoint_name
    batches = readable_batches(name, settings, changes or ([] if batch is None else [batch]))
    after = batches[-1] if batch is None else batch
    with running_session(settings) as spark:
        query_state = State(spark, Checkpoint(name.folder(settings)))
        if changes is not None:
            table = query_state.changes(changes, key or [], limit)
        elif timers:
            table = query_state.timers(after, key or [], limit)
        else:
            table = query_state.rows(after, key or [], limit) if rows or key else query_state.overview(after)
    if output_format == "table":
        shown_batches = f"batches {changes[0]} to {changes[1]}" if changes else f"after batch {after}"
        out.print(f"{name}, {shown_batches} (batches {batches[0]} to {batches[-1]} can be read)")
    show(table, output_format, limit)


def _continue_for(queries: "list[Query]", settings: Settings) -> None:
    if writer := next((query.name for query in queries if query.sink.delta_table(settings)), None):
        continue_with_delta(f"query {writer}")


@contextlib.contextmanager
def _session(settings: Settings, *, once: bool, in_real_time: bool = False) -> Iterator["tuple[SparkSession, StopRequest]"]:
    """A Spark session for queries. A signal ends the program and Spark's JVM while they start, and then requests a stop."""
    from pipeline.spark.session import running_session, ui_address

    end_at_once(fails=once)
    stop = StopRequest()
    with running_session(settings, stop.is_set, in_real_time=in_real_time) as spark:
        stop_requested(stop)
        if address := ui_address(spark):
            err.print(f"Spark's UI: {address}/StreamingQuery/")
        yield spark, stop
