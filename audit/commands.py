"""The commands `streamgauge verify`, `streamgauge why` and `streamgauge audit`."""

import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from contract.domains import plain_name
from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.output.format_option import FormatOption
from infrastructure.output.terminal import err, out
from infrastructure.settings import Settings
from infrastructure.text import utc_text

if TYPE_CHECKING:
    from audit.audited import Table
    from audit.catalog import Audited
    from audit.time_range import TimeRange
    from audit.verdicts.verdict import Verdict


def verify(
    query: Annotated[list[str] | None, typer.Argument(help="queries by name; all without one", show_default=False)] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="only windows that begin at this time, UTC, or later", show_default=False)
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="only windows that end at this time, UTC, or earlier", show_default=False)
    ] = None,
    output_format: FormatOption = "table",
) -> None:
    """Recount results from the source and compare every row. Exit code 1 if a row is wrong."""
    from audit.time_range import TimeRange
    from audit.verdicts.show import as_json, show
    from audit.verdicts.verdict_topic import write_verdicts

    settings, span = Settings.from_environment(), TimeRange.of(start, end)
    verdicts = verdicts_of(query or [], settings, span)
    if output_format == "json":
        sys.stdout.write(as_json(verdicts) + "\n")
    else:
        show(verdicts, out)
    if span is None:
        try:
            write_verdicts(settings, verdicts)
        except StreamgaugeError as error:
            err.print(f"warning: the verdicts are not in topic verdicts: {error}")
    words = {verdict.verdict for verdict in verdicts}
    raise typer.Exit(1 if "wrong" in words else 2 if "not checked" in words else 0)


def why(
    table: Annotated[str, typer.Argument(help="a result topic, or the query that writes it")],
    key: Annotated[
        list[str] | None,
        typer.Argument(
            help="the row's key, or a part of it that no other row has: columns as zip_code=94016, values alone, or JSON",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="how many records of each kind to list")] = 10,
    with_late: Annotated[  # noqa: FBT002 - an option
        bool,
        typer.Option("--late/--no-late", help="also look for records that came too late, or not, which is faster"),
    ] = True,
    output_format: FormatOption = "table",
) -> None:
    """Show the records behind a row of a result table. It shows which of them counted, repeated another, or came too late. Exit code 1 if the row is wrong."""
    from audit.catalog import placed, places_in
    from audit.why.records_behind import SeveralRows
    from audit.why.records_behind import why as explained
    from audit.why.show import as_json, show, show_keys

    settings = Settings.from_environment()
    result = table_named(table, settings)
    if (found := placed(result, places_in(settings), settings)) is None:
        raise has_not_run(result, settings)
    chosen, place = found
    try:
        with err.status(f"{chosen.topic.name}: reading the records behind the row"):
            explanation = explained(chosen, place, key or [], settings, limit=limit, with_late=with_late)
    except SeveralRows as several:
        if output_format == "table":
            show_keys(several.keys, out)
        raise
    if output_format == "json":
        sys.stdout.write(as_json(explanation) + "\n")
    else:
        show(explanation, out)
    raise typer.Exit(1 if explanation.is_wrong else 0)


def audit() -> None:
    """Verify every table continuously. A wrong row gives an alert within seconds. Ctrl-C ends it."""
    from audit.continuous.loop import start_when_alone
    from infrastructure.process.stop_signals import stop_requested

    stop = stop_requested()
    auditing = start_when_alone(Settings.from_environment(), lambda line: out.print(f"{utc_text(datetime.now(UTC))}  {line}"), stop)
    if auditing is None:
        return
    try:
        with err.status("") as shown:
            pause_seconds = 1
            while not stop.wait(pause_seconds):
                pause_seconds = 0 if auditing.step() else 1
                shown.update(auditing.line)
    finally:
        auditing.close()


def table_named(name: str, settings: Settings) -> "Table":
    """The result table of that topic, or that query. Raises StreamgaugeError if there is none."""
    from audit.audited import Table
    from audit.catalog import audited

    tables = [result for result in audited(settings) if isinstance(result, Table)]
    by_name = {table.query: table for table in reversed(tables)} | {table.topic.plain_name: table for table in tables}
    check_names("audited result table", [plain_name(name)], sorted(by_name))
    return by_name[plain_name(name)]


def verdicts_of(names: Sequence[str], settings: Settings, span: "TimeRange | None" = None) -> list["Verdict"]:
    """The verdicts on the queries of these names, or on all that have run here.

    span: only of the rows of that time; without names, results without times are left out, with a warning.
    Raises StreamgaugeError for an unknown name, and when none of the queries has run here, or one of the names has not.
    """
    from audit.catalog import audited, placed, places_in
    from audit.verdicts.verdict import Verdict, merged
    from audit.verification import has_times
    from audit.verification import verify as verified
    from infrastructure.kafka.topic_ends import partitions_by_topic

    places = places_in(settings)
    everything = list(audited(settings))
    others = {place.name.query for place in places} - {result.query for result in everything}
    check_names("query", names, [*dict.fromkeys(result.query for result in everything), *others])
    by_source, without_times = defaultdict(list), []
    for result in (result for result in everything if not names or result.query in names):
        with_place = placed(result, places, settings)
        if with_place is None and names:
            raise has_not_run(result, settings)
        if with_place is not None and span is not None and not has_times(result):
            without_times.append(result)
        elif with_place is not None:
            by_source[result.facts.source].append(with_place)
    if not places:
        msg = f"no query has run with STREAMGAUGE_HOME {settings.home}: there is nothing to compare. Run one first, with `streamgauge run`"
        raise StreamgaugeError(msg)
    if without_times:
        listed = ", ".join(result.sink for result in without_times)
        msg = f"rows without a time of their own, which --from and --to cannot select: {listed}; verify them without a range"
        if names:
            raise StreamgaugeError(msg)
        err.print(f"not verified: {msg}")
    partitions_by_topic(settings.kafka)  # fail at once if Kafka cannot be reached
    verdicts: list[Verdict] = []
    for source, of_source in by_source.items():
        with err.status(f"{source}: recounting{' from the start' if span is None else ''}"):
            verdicts += verified(of_source, settings, span)
    verdicts += [Verdict(name, "", problem="what it writes is not audited") for name in sorted(others) if not names or name in names]
    return [
        merged([verdict for verdict in verdicts if verdict.query == query])
        for query in dict.fromkeys(verdict.query for verdict in verdicts)
    ]


def has_not_run(result: "Audited", settings: Settings) -> StreamgaugeError:
    """The error for a result whose query has not run."""
    msg = f"{result.query} has not run with STREAMGAUGE_HOME {settings.home}: there is nothing to compare. Run it first, with `streamgauge run`"
    return StreamgaugeError(msg)
