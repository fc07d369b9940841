"""The command that looks into a checkpoint: state."""

from typing import Annotated

import typer

from contract.errors import StreamgaugeError
from contract.output_format import Format, FormatOption
from contract.settings import Settings
from contract.terminal import out


def state(
    query: Annotated[str, typer.Argument(help="a query by name; or a checkpoint, such as nest-camera-stats-v1-complete")],
    rows: Annotated[bool, typer.Option("--rows", help="show keys and values")] = False,  # noqa: FBT002 - an option of the command line
    key: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="show only what has TEXT in a field of its key; can be repeated")
    ] = None,
    timers: Annotated[bool, typer.Option("--timers", help="show the timers that wait")] = False,  # noqa: FBT002
    batch: Annotated[int | None, typer.Option(min=0, metavar="N", help="the state after batch N, instead of the last one")] = None,
    changes: Annotated[
        tuple[int, int] | None, typer.Option(metavar="FIRST LAST", help="show what the batches from FIRST to LAST changed")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many rows to show at most")] = 20,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Show what a query keeps between batches, also while it runs: operators, rows, bytes; keys and values; timers; changes."""
    from contract.storage.checkpoint_names import CheckpointName
    from pipeline.checkpoint.contents import Checkpoint
    from pipeline.checkpoint.state import State, readable_batches
    from pipeline.lake.row_formats import show
    from pipeline.running.reset import named
    from pipeline.spark.session import running_session

    if changes is not None and (batch is not None or timers or changes[0] > changes[1]):
        msg = "--changes FIRST LAST takes two batches in their order, and neither --batch nor --timers beside it"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    name = CheckpointName.of(query) or named(query, settings).checkpoint_name
    batches = readable_batches(name, settings, changes or ([] if batch is None else [batch]))
    after = batches[-1] if batch is None else batch
    with running_session(settings) as spark:
        held = State(spark, Checkpoint(name.folder(settings)))
        if changes is not None:
            found = held.changes(changes, key or [], limit)
        elif timers:
            found = held.timers(after, key or [], limit)
        else:
            found = held.rows(after, key or [], limit) if rows or key else held.overview(after)
    if output_format is Format.TABLE:
        what = f"batches {changes[0]} to {changes[1]}" if changes else f"after batch {after}"
        out.print(f"{name}, {what} (batches {batches[0]} to {batches[-1]} can be read)")
    show(found, output_format, limit)
