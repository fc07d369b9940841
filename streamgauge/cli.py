"""The command `streamgauge`: parses arguments, calls, prints. The implementation of a command is in the package of its subject."""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from typer.exceptions import TyperException

from audit import commands as audit_commands
from contract.errors import StreamgaugeError, check_names
from contract.output_format import FormatOption, RowFormatOption
from contract.settings import Settings
from contract.terminal import err, out, warn
from contract.web.proxies import prepare_proxies
from pipeline import commands as pipeline_commands
from pipeline.lake import commands as table_commands
from producers.commands import produce
from streamgauge import __version__
from streamgauge.completion import complete_names
from streamgauge.dead_letters.commands import dead_letters
from streamgauge.grouped_help import GroupedHelp
from streamgauge.operations import commands as operations
from streamgauge.platform import commands as local_commands
from streamgauge.records.commands import records
from streamgauge.system_errors import as_line
from streamgauge.workshop.commands import workshop

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
    debug: Annotated[bool, typer.Option("--debug", help="print errors with their traceback, too; as STREAMGAUGE_DEBUG=true")] = False,  # noqa: FBT002
) -> None:
    """Produce events to Kafka, aggregate them with Spark, watch the results, and verify every row."""
    if debug:
        os.environ["STREAMGAUGE_DEBUG"] = "true"  # for child processes, too


def up() -> None:
    """Start the embedded Kafka and schema registry. They run in the background. Topics that are missing are created, in your own Kafka too."""
    from streamgauge.platform.platform import Platform

    platform = Platform(Settings.from_environment(), say=err.print)
    platform.launch(detached=True)
    platform.wait_until_ready(out.print, with_registry=True)


def down() -> None:
    """Stop the embedded Kafka and schema registry, and the demo. Their data stays."""
    from streamgauge.demo import background
    from streamgauge.platform.platform import Platform

    settings = Settings.from_environment()
    if background.stop(settings):
        out.print("the demo is stopped")
    for line in Platform(settings).stop():
        out.print(line)


def report(
    query: Annotated[str, typer.Argument(help="a query that writes a result topic")],
    min_count: Annotated[int, typer.Option(help="keep rows that count this many or more (>=)")] = 0,
    output_format: RowFormatOption = "table",
) -> None:
    """Print a result table. It holds the last value of each key in the query's result topic."""
    from contract.row_formats import show
    from streamgauge.operations.report import report_rows, with_columns

    rows = report_rows(query, Settings.from_environment(), min_count, warn)
    show(with_columns(rows, is_flat=output_format != "json"), output_format)


def status(
    watch: Annotated[bool, typer.Option("--watch", help="keep the table current; Ctrl-C ends it")] = False,  # noqa: FBT002 - an option
    output_format: FormatOption = "table",
) -> None:
    """Show the status of each query, and the last alerts. For each query: state, rates, lag, watermark, late rows and last error."""
    from datetime import UTC, datetime

    from contract.query_status import read_statuses
    from streamgauge.operations import status_table

    if watch and output_format == "json":
        msg = "--watch cannot be combined with --format json; leave out one of them"
        raise StreamgaugeError(msg)
    settings, console = Settings.from_environment(), Console(highlight=False)  # wraps long lines, as a table that is drawn again must
    if watch:
        # Ending the watch is not a failure, so it sets no exit code.
        with contextlib.suppress(KeyboardInterrupt):
            status_table.watch(settings, console)
    elif output_format == "json":
        sys.stdout.write(status_table.as_json(read_statuses(settings, warn)) + "\n")
    else:
        found, alerts = read_statuses(settings, warn), status_table.recent_alerts(settings)
        console.print(status_table.as_table(found, datetime.now(UTC), console.width, alerts))


def dashboard() -> None:
    """Serve the dashboard. It listens on STREAMGAUGE_DASHBOARD_HOST, by default on loopback."""
    from dashboard.server import dashboard_command

    command = dashboard_command(Settings.from_environment())
    os.execv(command[0], command)  # noqa: S606 - Streamlit takes this process over, and with it the signals


def demo(
    with_dashboard: Annotated[bool, typer.Option("--dashboard/--no-dashboard", help="with the dashboard, or without")] = True,  # noqa: FBT002 - an option
    only: Annotated[list[str] | None, typer.Option(metavar="DOMAIN", help="with events of this domain alone; can be repeated")] = None,
    seconds: Annotated[float | None, typer.Option("--for", metavar="SECONDS", help="end after so many seconds")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="go on in the background once everything runs")] = False,  # noqa: FBT002
    opens_page: Annotated[bool, typer.Option("--open", help="open the dashboard in a browser")] = False,  # noqa: FBT002 - an option
) -> None:
    """Run everything in the foreground. This starts Kafka, the producers, the pipeline and the dashboard. Ctrl-C or `streamgauge down` stops it; the next start continues."""
    from contract.domains import DOMAINS, NAMES
    from streamgauge.demo import background
    from streamgauge.demo.demo import Demo
    from streamgauge.demo.ports import on_free_ports
    from streamgauge.demo.services import COMMAND

    check_names("domain", only or [], NAMES)
    settings = Settings.from_environment()
    if detach:
        arguments = (word for word in sys.argv[1:] if word != "--detach")
        raise typer.Exit(background.start([*COMMAND, *arguments], settings, err.print))
    settings = on_free_ports(settings, err.print, dashboard=with_dashboard)
    domains = [domain for domain in DOMAINS if not only or domain.name in only]
    Demo(settings, err, dashboard=with_dashboard, domains=domains, opens_page=opens_page).run(seconds)


def _add(group: str, *commands: Callable[..., None], short_help: str | None = None) -> None:
    for command in commands:
        app.command(rich_help_panel=group, short_help=short_help)(command)


_add("Run", demo, up, down)
app.add_typer(produce, name="produce", cls=GroupedHelp, rich_help_panel="Run")
_add("Run", pipeline_commands.run, short_help="Run queries, continuously or once.")
_add("Run", pipeline_commands.ingest, short_help="Merge a topic into a Delta table, one row per key.")
_add("Run", dashboard)
_add("See the results", status, report, records, table_commands.query, table_commands.sql)
_add("Prove and explain them", audit_commands.verify, audit_commands.why)
_add("Prove and explain them", pipeline_commands.state, short_help="Show what a query keeps between batches.")
_add("Keep it running", operations.doctor, operations.settings, operations.logs)
app.add_typer(dead_letters, name="dead-letters", cls=GroupedHelp, rich_help_panel="Keep it running")
_add("Keep it running", pipeline_commands.reset, short_help="Delete the checkpoints and results of a stopped query.")
_add("Keep it running", table_commands.derive, table_commands.maintain, operations.expire, operations.clean)
app.add_typer(workshop, name="workshop", cls=GroupedHelp, rich_help_panel="Learn")
_add("Prepare machines", local_commands.fetch, local_commands.packages, local_commands.spark_master, local_commands.spark_worker)
app.command(hidden=True)(local_commands.executor)
for group in (app, dead_letters):
    for added in group.registered_commands:
        complete_names(added.callback)


def main() -> None:
    """Runs the command. An error that the user can fix is printed as one line. docs/commands.md lists the exit codes."""
    try:
        _refuse_windows()
        prepare_proxies()
        code = app(standalone_mode=False)
    except (StreamgaugeError, OSError) as error:
        if os.environ.get("STREAMGAUGE_DEBUG", "").lower() in {"1", "true", "yes"}:
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


def _refuse_windows() -> None:
    if sys.platform == "win32":
        msg = "Windows runs Streamgauge in WSL only (Windows Subsystem for Linux): install that with `wsl --install`, and start Streamgauge in its terminal"
        raise StreamgaugeError(msg)


if __name__ == "__main__":
    main()
