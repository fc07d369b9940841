"""The command `streamgauge`: parses, calls, prints. What a command does stands in the room that it is about."""

import sys

import typer
from rich.console import Console

from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings

app = typer.Typer(
    help="Three kinds of live events into Kafka, Spark turns them into small tables that are always right, and a person watches them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
out, err = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)


@app.command()
def up() -> None:
    """Start the embedded platform in the background, wait until it answers, create the topics."""
    from streamgauge.local.platform import Platform

    platform = Platform(Settings.from_environment())
    for line in platform.start(detached=True):
        out.print(line)
    for warning in platform.warnings:
        err.print(f"warning: {warning}")


@app.command()
def down() -> None:
    """Stop the embedded platform. Its data stays."""
    from streamgauge.local.platform import Platform

    for line in Platform(Settings.from_environment()).stop():
        out.print(line)


def main() -> None:
    """Runs the command; an error that a user can mend is one message and exit code 2."""
    try:
        app()
    except StreamgaugeError as error:
        err.print(f"error: {error}", markup=False)
        sys.exit(2)


if __name__ == "__main__":
    main()
