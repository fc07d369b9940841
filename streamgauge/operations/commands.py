"""The commands status, report, export, serve, doctor, settings, logs, clean and expire."""

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated

import typer
from rich.console import Console

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.output.format_option import FormatOption, RowFormatOption
from infrastructure.output.terminal import out, warn
from infrastructure.settings import Settings


def status(
    watch: Annotated[bool, typer.Option("--watch", help="keep the table current; Ctrl-C ends it")] = False,  # noqa: FBT002 - an option
    output_format: FormatOption = "table",
) -> None:
    """Show the status of each query, and the last alerts. For each query: state, rates, lag, watermark, rows that came too late, and last error."""
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
        statuses, alerts = read_statuses(settings, warn), status_table.recent_alerts(settings)
        console.print(status_table.as_table(statuses, datetime.now(UTC), console.width, alerts))


def report(
    table: Annotated[str, typer.Argument(help="a result topic, or the query that writes it")],
    min_count: Annotated[int, typer.Option(help="print only rows with a count of at least this number")] = 0,
    output_format: RowFormatOption = "table",
) -> None:
    """Print a result table. It holds the last value of each key in its topic."""
    from infrastructure.output.row_formats import show
    from streamgauge.operations.report import report_rows, with_columns

    rows = report_rows(table, Settings.from_environment(), min_count, warn)
    show(with_columns(rows, is_flat=output_format != "json"), output_format)


def export(
    topic: Annotated[list[str] | None, typer.Argument(help="result topics; all without one", show_default=False)] = None,
    check: Annotated[bool, typer.Option("--check", help="write nothing; exit code 1 if a file differs from its topic")] = False,  # noqa: FBT002
) -> None:
    """Write result tables to Parquet files in the lake. A file has one row for each key of its topic."""
    from streamgauge.operations import export as exporting

    has_differences = False
    for table in exporting.export(Settings.from_environment(), topic or [], warn, check=check):
        files = len(table.differing)
        has_differences |= files > 0
        outcome = "unchanged" if not files else f"{files} {'file' if files == 1 else 'files'} {'differ' if check else 'replaced'}"
        out.print(f"{table.topic}: {table.rows:,} rows, {outcome}, {table.folder}")
    sys.exit(check and has_differences)


def serve(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to serve at")] = 9465,
    host: Annotated[
        str, typer.Option(help="the address to serve at; there is no authentication: use loopback, or a closed network")
    ] = "127.0.0.1",
) -> None:
    """Serve result tables over HTTP at /tables, as JSON and Arrow. It runs until it is stopped."""
    from streamgauge.operations.table_server import table_app
    from streamgauge.platform import http_server
    from streamgauge.platform.listening import url_of

    out.print(f"result tables are at {url_of(host, port)}/tables; Ctrl-C ends it")
    with table_app(Settings.from_environment(), host) as app:
        http_server.run(app, host, port)


def doctor(output_format: FormatOption = "table") -> None:
    """Check the machine, the servers and the topics. Each problem is one line that says what to do. Exit code 1 if there is one."""
    from streamgauge.operations.doctor.examination import examine
    from streamgauge.operations.doctor.findings import as_json, as_text

    findings = examine(Settings.from_environment())
    if output_format == "json":
        sys.stdout.write(as_json(findings) + "\n")
    else:
        for line in as_text(findings):
            out.print(line)
    sys.exit(any(finding.level == "problem" for finding in findings))


def settings(output_format: RowFormatOption = "table") -> None:
    """Print the settings in effect. Each comes from the environment, from a file or is the default; docs/settings.md says what it means."""
    from infrastructure.output.row_formats import Rows, show
    from infrastructure.text import without_credentials

    current, explicit, rows = Settings.from_environment(), Settings.explicit(), []
    for setting in fields(current):
        variable, value = setting.metadata["variable"], getattr(current, setting.name)
        text = "" if value is None else without_credentials(str(value)) if setting.repr or not value else "***"
        rows.append((variable, text, explicit[variable].origin if variable in explicit else "default"))
    show(Rows(["variable", "value", "from"], rows), output_format)


def logs(
    part: Annotated[
        str | None, typer.Argument(help="the part, such as pipeline, kafka or spark; all without one", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="continue with lines that are added; Ctrl-C ends it")] = False,  # noqa: FBT002
    count: Annotated[int, typer.Option("--lines", min=0, help="how many of the last lines of each log to print")] = 20,
) -> None:
    """Print the last lines of the logs. These are the logs of the demo's parts, the servers and Spark."""
    from streamgauge.operations.logs import lines

    # Ending it is not a failure, so it sets no exit code.
    with contextlib.suppress(KeyboardInterrupt):
        for line in lines(Settings.from_environment(), part, count, follow=follow):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,  # noqa: FBT002 - an option of the command line
    topics: Annotated[bool, typer.Option("--topics", help="also delete Streamgauge's topics in your own Kafka")] = False,  # noqa: FBT002
    topic: Annotated[list[str] | None, typer.Option("--topic", help="delete only this topic of Streamgauge; can be repeated")] = None,
) -> None:
    """Delete all data in STREAMGAUGE_HOME. This includes topics, schemas, checkpoints, tables and logs. Stop everything first."""
    from infrastructure.storage.removal import confirm
    from infrastructure.text import size_text
    from streamgauge.operations import clean as cleaning
    from streamgauge.operations.topic_deletion import delete_topics, own_topics

    settings = Settings.from_environment()
    if topic:
        _clean_topics(topic, settings, yes=yes)
        return
    if topics and not settings.kafka_bootstrap_servers:
        msg = "--topics is for a Kafka of your own, which KAFKA_BOOTSTRAP_SERVERS names; the topics of the embedded one are in STREAMGAUGE_HOME, and `streamgauge clean` deletes them"
        raise StreamgaugeError(msg)
    cleaning.check(settings)
    entries = cleaning.entries(settings)
    in_kafka = own_topics(settings) if topics else {}
    if not entries and not in_kafka:
        out.print(f"nothing to delete in {settings.home}{f' and in Kafka at {settings.kafka}' if topics else ''}")
        return
    for line in (*map(str, entries), *_described(in_kafka, settings), *cleaning.staying(settings, topics_go=topics)):
        out.print(line)
    of_kafka = f" and {len(in_kafka)} topics of {settings.kafka}" if in_kafka else ""
    confirm(f"delete all of this, {size_text(sum(entry.size_bytes for entry in entries))}{of_kafka}?", yes=yes)
    delete_topics(settings.kafka, in_kafka)
    cleaning.delete(entries, settings)
    out.print("deleted")


def _clean_topics(names: list[str], settings: Settings, *, yes: bool) -> None:
    from contract.domains import name_in_kafka
    from infrastructure.storage.removal import confirm
    from streamgauge.operations.topic_deletion import delete_topics, own_topics

    existing, names = own_topics(settings), [*dict.fromkeys(map(name_in_kafka, names))]
    check_names("topic", names, existing)
    for line in _described({name: existing[name] for name in names}, settings):
        out.print(line)
    confirm("delete this?", yes=yes)
    delete_topics(settings.kafka, names)
    out.print(
        "deleted; `streamgauge up` creates it again, empty. A query that reads it, or has written into it, recounts after `streamgauge reset QUERY`"
    )


def _described(records_by_topic: Mapping[str, int], settings: Settings) -> list[str]:
    return [
        f"topic {name} in Kafka at {settings.kafka}  {records:,} records were written to it" for name, records in records_by_topic.items()
    ]


def expire(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would be deleted")] = False,  # noqa: FBT002
) -> None:
    """Delete old rows from result topics. Old is more than STREAMGAUGE_RESULT_RETENTION before the newest window of the table."""
    from streamgauge.operations import expiry

    settings = Settings.from_environment()
    expiry.retention_seconds(settings)
    for result in expiry.expire(settings, dry_run=dry_run):
        out.print(expiry.sentence(result, dry_run=dry_run))
