"""The commands of the pipeline: run, reset."""

import sys
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
MODES = ("append", "update", "complete")


def run(
    query: Annotated[list[str] | None, typer.Argument(help="queries by name; all without one", show_default=False)] = None,
    once: Annotated[bool, typer.Option("--once", help="take what is there and end")] = False,  # noqa: FBT002 - an option of the command line
    mode: Annotated[str | None, typer.Option(help="another output mode: append, update or complete")] = None,
    console: Annotated[bool, typer.Option("--console", help="print the rows of each batch, by window, instead of writing them")] = False,  # noqa: FBT002
    topic_pattern: Annotated[str | None, typer.Option(help="read all topics that match this regular expression")] = None,
) -> None:
    """Run queries: continuously, or --once."""
    from pipeline.catalog import chosen
    from pipeline.console import on_console
    from pipeline.runner import Runner, RunOptions
    from pipeline.session import spark_session, stopping

    if mode is not None and mode not in MODES:
        msg = f"--mode {mode}; expected one of {', '.join(MODES)}"
        raise StreamgaugeError(msg)
    if (mode or topic_pattern or console) and not query:
        msg = "--mode, --console and --topic-pattern are for queries that are named: streamgauge run nest-camera-stats --mode complete"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    queries = chosen(query or [], settings)
    if mode is not None:
        queries = [replace(one, mode=mode) if one.name in (query or []) else one for one in queries]  # type: ignore[arg-type]
    if console:
        queries = [on_console(one) for one in queries if one.name in (query or [])]
    spark = spark_session(settings)
    runner = Runner(spark, settings, RunOptions(once=once, pattern=topic_pattern), lambda line: err.print(line, markup=False))
    runner.stop_on_signals()
    with stopping(spark, runner.stop_requested.is_set):
        runner.run(queries)


def reset(
    query: Annotated[str, typer.Argument(help="a query by name")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,  # noqa: FBT002 - an option of the command line
) -> None:
    """Put a query back to before its first run: delete its checkpoints and what it has written. It must not run."""
    from pipeline.reset import checkpoints_held, deletions, named, notes
    from streamgauge.removal import is_agreed

    settings = Settings.from_environment()
    chosen = named(query, settings)
    with checkpoints_held(chosen, settings):
        found = deletions(chosen, settings)
        if not found:
            out.print(f"nothing to delete: {query} is as before its first run", markup=False)
            return
        for deletion in found:
            out.print(deletion.what, markup=False)
        for note in notes(chosen, settings):
            out.print(f"note: {note}", markup=False)
        if not is_agreed(f"delete this, so that {query} counts anew at its next run?", yes=yes):
            err.print("nothing was deleted")
            sys.exit(1)
        for deletion in found:
            deletion.do()
    out.print(f"deleted; {query} counts anew at its next run", markup=False)
