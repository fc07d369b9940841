"""The command `streamgauge`: puts its commands together, and turns errors into lines and exit codes."""

from streamgauge import own_packages  # noqa: F401 - before all that import one of them

# isort: split
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer
from typer.exceptions import TyperException

from audit import commands as audit_commands
from infrastructure.errors import StreamgaugeError
from infrastructure.output.terminal import err, out
from infrastructure.settings import Settings
from infrastructure.web.proxies import prepare_proxies
from pipeline import commands as pipeline_commands
from pipeline.lake import commands as table_commands
from producers.commands import produce
from streamgauge import __version__
from streamgauge.completion import complete_names
from streamgauge.dead_letters.commands import dead_letters
from streamgauge.demo import commands as demo_commands
from streamgauge.grouped_help import GroupedHelp
from streamgauge.metrics.commands import lineage, metrics, traces
from streamgauge.notify.commands import notify
from streamgauge.operations import commands as operations
from streamgauge.platform import commands as local_commands
from streamgauge.records.commands import records
from streamgauge.submit import submit
from streamgauge.system_errors import as_line
from streamgauge.workshop.commands import break_, workshop

FAULT = 70
"""The exit code for an error that nothing expects, as in sysexits.h."""
app = typer.Typer(cls=GroupedHelp, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(is_asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if is_asked:
        out.print(f"streamgauge {__version__}")
        raise typer.Exit


@app.callback()
def streamgauge(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and end")] = False,  # noqa: ARG001, FBT002 - the callback answers
    debug: Annotated[bool, typer.Option("--debug", help="print errors with their traceback; same as STREAMGAUGE_DEBUG=true")] = False,  # noqa: FBT002
) -> None:
    """Produce events to Kafka, aggregate them with Spark, watch the results, and verify every row."""
    if debug:
        os.environ["STREAMGAUGE_DEBUG"] = "true"  # for child processes, too


def _add(group: str, *commands: Callable[..., None], short_help: str | None = None) -> None:
    for command in commands:
        app.command(rich_help_panel=group, short_help=short_help)(command)


_add("Run", demo_commands.demo, local_commands.up, demo_commands.down)
app.add_typer(produce, name="produce", cls=GroupedHelp, rich_help_panel="Run")
_add("Run", pipeline_commands.run, short_help="Run queries, continuously or once.")
_add("Run", pipeline_commands.ingest, short_help="Merge a topic into a Delta table, one row per key.")
_add("Run", submit, short_help="Run a PySpark program of your own.")
_add("Run", demo_commands.dashboard)
_add("See the results", operations.status, operations.report, records, table_commands.query, operations.serve)
_add("Prove and explain them", audit_commands.verify, audit_commands.why, audit_commands.audit)
_add("Prove and explain them", pipeline_commands.state, short_help="Show what a query keeps between batches.")
_add("Keep it running", operations.doctor, operations.settings, operations.logs, metrics)
_add("Keep it running", lineage, short_help="Send the runs of queries to OpenLineage.")
_add("Keep it running", traces, short_help="Send each batch as a span, by OTLP.")
_add("Keep it running", notify, short_help="Send alerts on offline cameras, alarms and crowds.")
app.add_typer(dead_letters, name="dead-letters", cls=GroupedHelp, rich_help_panel="Keep it running")
_add("Keep it running", pipeline_commands.reset, short_help="Delete the checkpoints and results of a stopped query.")
_add("Keep it running", table_commands.derive, operations.export, table_commands.maintain, operations.expire, operations.clean)
app.add_typer(workshop, name="workshop", cls=GroupedHelp, rich_help_panel="Learn")
app.command("break", rich_help_panel="Learn")(break_)
_add("Prepare machines", local_commands.fetch, local_commands.packages, local_commands.spark_master, local_commands.spark_worker)
app.command(hidden=True)(local_commands.executor)
for group in (app, dead_letters):
    for added in group.registered_commands:
        complete_names(added.callback)


def main() -> None:
    """Runs the command. An error that the user can fix is printed as one line. docs/commands.md lists the exit codes."""
    try:
        _refuse_windows()
        _refuse_bytes_that_are_no_text(sys.argv[1:])
        _have_utf_8_in_java_too()
        prepare_proxies()
        code = app(prog_name="streamgauge", standalone_mode=False)
    except (StreamgaugeError, OSError) as error:
        if _is_debugging():
            traceback.print_exception(error)
        err.print(f"error: {as_line(error) if isinstance(error, OSError) else error}")
        code = error.exit_code if isinstance(error, StreamgaugeError) else 2
    except TyperException as error:  # an unknown option, or an invalid value of an option
        message = error.format_message()
        is_help = message.startswith("Usage: ")  # a command without its subcommand
        err.print(message if is_help else f"error: {message}")
        code = 2
    except typer.Abort:  # the input ended at a prompt
        code = StreamgaugeError.exit_code
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = 128 + signal.SIGPIPE  # nobody reads the output any more: `streamgauge records nest-logs | head`
    except Exception as error:
        traceback.print_exception(error)
        err.print(f"error: {type(error).__name__} was not expected; this is a fault of Streamgauge: report it with the lines above")
        code = FAULT
    sys.exit(code)


def _is_debugging() -> bool:
    with suppress(StreamgaugeError):
        return Settings.from_environment().debug
    return os.environ.get("STREAMGAUGE_DEBUG", "").lower() in {"1", "true", "yes"}  # other settings cannot be read


def _refuse_windows() -> None:
    if sys.platform == "win32":
        msg = "Windows runs Streamgauge in WSL only (Windows Subsystem for Linux): install that with `wsl --install`, and start Streamgauge in its terminal"
        raise StreamgaugeError(msg)


def _have_utf_8_in_java_too() -> None:
    """Where LC_ALL asks for ASCII, Python has UTF-8 all the same, and Java finds no file in a folder named ü."""
    if os.environ.get("LC_ALL") in {"C", "POSIX"}:
        os.environ["LC_ALL"] = "C.UTF-8"


def _refuse_bytes_that_are_no_text(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:  # Python has such bytes as halves of surrogate pairs, which no client takes
            msg = f"argument {argument!r} is not UTF-8; correct it, or set LANG to a locale in UTF-8"
            raise StreamgaugeError(msg) from None


if __name__ == "__main__":
    main()
