"""The commands `streamgauge produce ...`: they read the options, and call what does the work."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.text import without_credentials

produce = typer.Typer(help="Write events into the source topics.", no_args_is_help=True, rich_markup_mode=None)
out, err = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)

_ONLY_SIMULATED_NEST = {"cameras": "--cameras", "speed_up": "--speed-up", "start": "--start"}
_ONLY_SIMULATED_WIKIMEDIA = {"speed_up": "--speed-up", "start": "--start"}
_ONLY_PACED = {"rate": "--rate", "unpaced": "--unpaced"}
_SECONDS_TO_COME_LIVE = 5.0
_ONLY_SIMULATED_TAXI = {"start": "--start", "odd": "--odd", "go_on": "--continue"}


@produce.callback()
def _produce() -> None:
    """Write events into the source topics."""


@produce.command()
def nest(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    cameras: Annotated[int, typer.Option(help="Simulated cameras; data/device_locations.csv locates the first 800.")] = 500,
    rate: Annotated[float, typer.Option(help="Documents a second.")] = 100.0,
    speed_up: Annotated[
        float, typer.Option(help="Seconds of event time a second of --rate: documents are speed-up / rate seconds apart.")
    ] = 60.0,
    unpaced: Annotated[bool, typer.Option("--unpaced", help="Send as fast as possible, with the same event times.")] = False,
    limit: Annotated[int | None, typer.Option(help="Documents to send, before faults add to them.  [default: endless]")] = None,
    seed: Annotated[int, typer.Option(help="The same seed and --start give the same documents.")] = 0,
    start: Annotated[str | None, typer.Option(help="Event time of the first document, ISO 8601, UTC.  [default: now]")] = None,
    go_on: Annotated[bool, typer.Option("--continue", help="Begin after the newest event that the topic holds, if it holds any.")] = False,
    file: Annotated[Path | None, typer.Option(help="Replay recorded documents instead, one JSON a line.")] = None,
    late: Annotated[float, typer.Option(help="Fraction of the documents sent late, but within the watermark.")] = 0.0,
    too_late: Annotated[float, typer.Option(help="Fraction sent when they are two watermarks old.")] = 0.0,
    duplicates: Annotated[float, typer.Option(help="Fraction sent twice.")] = 0.0,
    corrupt: Annotated[float, typer.Option(help="Fraction of which a damaged copy is sent as well.")] = 0.0,
    watermark: Annotated[str | None, typer.Option(help="What late is measured by.  [default: STREAMGAUGE_WATERMARK]")] = None,
    json: Annotated[bool, typer.Option("--json", help="The summary as one line of JSON on standard output.")] = False,
) -> None:
    """Cameras that see people: simulated Works-with-Nest documents, or recorded ones."""
    from contract.durations import seconds
    from contract.topics import NEST_LOGS
    from producers.delivery.faults import Faults
    from producers.delivery.resume import newest_event_ms
    from producers.delivery.run import Run, raise_if_undelivered, warn_of_short_stream
    from producers.delivery.run import produce as run_producer
    from producers.nest import simulation as story
    from producers.nest.recording import event_time_ms, replay

    settings = Settings.from_environment()
    _check_positive(rate=rate, speed_up=speed_up)
    watermark_seconds = seconds(watermark or settings.watermark, "--watermark" if watermark else "STREAMGAUGE_WATERMARK")
    faults = Faults(late, too_late, duplicates, corrupt, watermark_seconds, seed)
    if file:
        _refuse_options(context, _ONLY_SIMULATED_NEST)
        events, is_finite = replay(file, limit), True
    else:
        memory_seconds = min(story.MEMORY_SECONDS, watermark_seconds / 2)
        newest_ms = newest_event_ms(settings, NEST_LOGS.name, event_time_ms, _notice) if go_on else None
        begin = _start(start) if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000 + speed_up / rate, UTC)
        simulation = story.Simulation(begin, seed, cameras, speed_up / rate, limit, memory_seconds)
        events, is_finite = story.simulate(simulation), limit is not None
        if limit is not None and (warning := warn_of_short_stream(faults, limit * speed_up / rate)):
            err.print(f"warning: {warning}")
    run = Run(settings.kafka, NEST_LOGS.name, faults, story.corrupt, None if unpaced else rate, limit, is_finite, is_simulated=file is None)
    summary = run_producer(run, events, err)
    if json:
        out.print(summary.as_json("people_seen"), markup=False)
    else:
        summary.print_table(err, "people_seen", "distinct sightings: device_id, start_time")
    raise_if_undelivered(summary, settings.kafka)


@produce.command()
def taxi(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    file: Annotated[Path | None, typer.Option(help="Replay a Parquet file of TLC's green taxi trips, in order of drop-off.")] = None,
    month: Annotated[str | None, typer.Option(help="Fetch that month from TLC, once, and replay it: 2024-03.")] = None,
    speed_up: Annotated[float, typer.Option(help="Seconds of event time a second: 3600 plays an hour a second.")] = 3600.0,
    rate: Annotated[float | None, typer.Option(help="Trips a second, whatever their times, instead of --speed-up.")] = None,
    unpaced: Annotated[bool, typer.Option("--unpaced", help="Send as fast as possible, with the same event times.")] = False,
    limit: Annotated[int | None, typer.Option(help="Trips to send, before faults add to them.  [default: endless, or the file]")] = None,
    seed: Annotated[int, typer.Option(help="The same seed and --start give the same trips; also decides on the faults.")] = 0,
    start: Annotated[str, typer.Option(help="Event time from which trips end, ISO 8601, UTC.")] = "2024-03-01T00:00:00Z",
    go_on: Annotated[bool, typer.Option("--continue", help="Begin after the newest trip that the topic holds, if it holds any.")] = False,
    odd: Annotated[float, typer.Option(help="Fraction of the simulated trips that are odd: refunds, no codes, unknown zones.")] = 0.0,
    late: Annotated[float, typer.Option(help="Fraction of the trips sent late, but within the watermark.")] = 0.0,
    too_late: Annotated[float, typer.Option(help="Fraction sent when they are two watermarks old.")] = 0.0,
    duplicates: Annotated[float, typer.Option(help="Fraction sent twice.")] = 0.0,
    corrupt: Annotated[float, typer.Option(help="Fraction of which a damaged copy is sent as well.")] = 0.0,
    watermark: Annotated[str | None, typer.Option(help="What late is measured by.  [default: STREAMGAUGE_WATERMARK]")] = None,
    json: Annotated[bool, typer.Option("--json", help="The summary as one line of JSON on standard output.")] = False,
) -> None:
    """Green taxi trips of New York: simulated, or TLC's own."""
    from contract.durations import seconds
    from contract.topics import NYC_TAXI
    from producers.delivery.faults import Faults
    from producers.delivery.resume import newest_event_ms
    from producers.delivery.run import Run, raise_if_undelivered, warn_of_short_stream
    from producers.delivery.run import produce as run_producer
    from producers.taxi import stream as story
    from producers.taxi.download import fetch_month
    from producers.taxi.simulation import SECONDS_A_TRIP, Simulation

    settings = Settings.from_environment()
    _check_positive(speed_up=speed_up, rate=1.0 if rate is None else rate)
    _check_alternatives({"--file": file, "--month": month})
    _check_alternatives({"--speed-up": _is_given(context, "speed_up"), "--rate": rate, "--unpaced": unpaced})
    watermark_seconds = seconds(watermark or settings.watermark, "--watermark" if watermark else "STREAMGAUGE_WATERMARK")
    faults = Faults(late, too_late, duplicates, corrupt, watermark_seconds, seed)
    if file or month:
        _refuse_options(context, _ONLY_SIMULATED_TAXI)
        path = file or fetch_month(month or "", settings.cache, err)
        events, is_finite = story.replay(path, lambda line: err.print(line, markup=False), limit), True
    else:
        newest_ms = newest_event_ms(settings, NYC_TAXI.name, story.event_time_ms, _notice) if go_on else None
        begin = _start(start) if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000 + 1, UTC)
        events, is_finite = story.simulate(Simulation(begin, seed, limit, odd, newest_ms is None)), limit is not None
        if limit is not None and (warning := warn_of_short_stream(faults, limit * SECONDS_A_TRIP)):
            err.print(f"warning: {warning}")
    clock_factor = None if unpaced or rate else speed_up
    run = Run(settings.kafka, NYC_TAXI.name, faults, story.corrupt, rate, limit, is_finite, clock_factor, is_simulated=not (file or month))
    summary = story.with_trips(run_producer(run, events, err))
    if json:
        out.print(summary.as_json("trips"), markup=False)
    else:
        summary.print_table(err, "trips", "trips, each of them once")
    raise_if_undelivered(summary, settings.kafka)


@produce.command()
def wikimedia(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    live: Annotated[bool, typer.Option("--live", help="The real stream, WIKIMEDIA_URL; going on where the last run ended.")] = False,
    live_or_simulated: Annotated[
        bool, typer.Option("--live-or-simulated", help="The real stream, without faults, if it comes within seconds; else a simulation.")
    ] = False,
    url: Annotated[str | None, typer.Option(help="A live stream of server-sent events from elsewhere.")] = None,
    file: Annotated[Path | None, typer.Option(help="Replay recorded changes: server-sent events, or one JSON object a line.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The Avro schema to write by.  [default: data/schemas/wikimedia-value.avsc]")] = None,
    rate: Annotated[float, typer.Option(help="Changes a second, simulated or recorded.")] = 50.0,
    speed_up: Annotated[
        float, typer.Option(help="Seconds of event time a second of --rate: simulated ones are speed-up / rate seconds apart.")
    ] = 1.0,
    unpaced: Annotated[bool, typer.Option("--unpaced", help="Send as fast as possible, with the same event times.")] = False,
    limit: Annotated[int | None, typer.Option(min=0, help="Changes to send, before faults add to them.  [default: endless]")] = None,
    seed: Annotated[int, typer.Option(help="The same seed and --start give the same changes.")] = 0,
    start: Annotated[str | None, typer.Option(help="Event time of the first simulated change, ISO 8601, UTC.  [default: now]")] = None,
    late: Annotated[float, typer.Option(help="Fraction of the changes sent late, but within the watermark.")] = 0.0,
    too_late: Annotated[float, typer.Option(help="Fraction sent when they are two watermarks old.")] = 0.0,
    duplicates: Annotated[float, typer.Option(help="Fraction sent twice.")] = 0.0,
    corrupt: Annotated[float, typer.Option(help="Fraction of which a damaged copy is sent as well.")] = 0.0,
    watermark: Annotated[str | None, typer.Option(help="What late is measured by.  [default: STREAMGAUGE_WIKIMEDIA_WATERMARK]")] = None,
    json: Annotated[bool, typer.Option("--json", help="The summary as one line of JSON on standard output.")] = False,
) -> None:
    """Changes of the world's wikis, in Avro: simulated ones, or live, or recorded."""
    from contract.durations import seconds
    from contract.storage.data_files import data_file
    from producers.delivery.faults import Faults
    from producers.delivery.run import warn_of_short_stream
    from producers.wikimedia.avro import schema_text
    from producers.wikimedia.live import unreachable
    from producers.wikimedia.run import Order, WikimediaRun
    from producers.wikimedia.simulation import Simulation

    settings = Settings.from_environment()
    _check_positive(rate=rate, speed_up=speed_up)
    _at_most_one({"--live": live, "--live-or-simulated": live_or_simulated, "--url": url, "--file": file})
    watermark_seconds = seconds(
        watermark or settings.wikimedia_watermark, "--watermark" if watermark else "STREAMGAUGE_WIKIMEDIA_WATERMARK"
    )
    faults = Faults(late, too_late, duplicates, corrupt, watermark_seconds, seed)
    address = url or (settings.wikimedia_url if live or live_or_simulated else None)
    if live_or_simulated and address is not None:
        reason = unreachable(address, settings.wikimedia_user_agent, _SECONDS_TO_COME_LIVE)
        shown = without_credentials(address)
        err.print(f"live changes from {shown}" if reason is None else f"cannot reach {shown} ({reason}): simulated changes", markup=False)
        address, faults = (address, Faults(watermark_seconds=watermark_seconds)) if reason is None else (None, faults)
    elif address or file:
        _refuse_options(
            context, _ONLY_SIMULATED_WIKIMEDIA | (_ONLY_PACED if address else {}), "live and recorded ones come with their own times"
        )
    stream = address or file or Simulation(_start(start), seed, speed_up / rate, limit)
    if isinstance(stream, Simulation) and limit is not None and (warning := warn_of_short_stream(faults, limit * speed_up / rate)):
        err.print(f"warning: {warning}")
    written_by = schema_text(schema or data_file("schemas/wikimedia-value.avsc"))
    run = WikimediaRun(settings, Order(stream, written_by, faults, None if unpaced or address else rate, limit), err)
    summary = run.produce()
    if json:
        out.print(run.as_json(summary), markup=False)
    else:
        run.print_table(summary)


def _notice(line: str) -> None:
    err.print(line, markup=False)


def _at_most_one(options: dict[str, object]) -> None:
    given = [option for option, value in options.items() if value]
    if len(given) > 1:
        msg = f"{' and '.join(given)} are both given; changes come from one place: leave all but one out"
        raise StreamgaugeError(msg)


def _check_positive(**options: float) -> None:
    for name, value in options.items():
        if not (value > 0 and math.isfinite(value)):
            msg = f"--{name.replace('_', '-')} is {value:g}; expected a number above 0"
            raise StreamgaugeError(msg)


def _check_alternatives(options: dict[str, object]) -> None:
    """Raises StreamgaugeError when more than one of the options, by name, is given."""
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        msg = f"{' and '.join(given)} exclude one another; leave out {'one' if len(given) == 2 else 'all but one'} of them"  # noqa: PLR2004
        raise StreamgaugeError(msg)


def _start(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        start = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"--start is {text!r}; expected a time in ISO 8601, such as 2024-03-01T08:00:00Z"
        raise StreamgaugeError(msg) from error
    return start if start.tzinfo else start.replace(tzinfo=UTC)


def _refuse_options(context: typer.Context, options: dict[str, str], why: str = "a file holds recorded ones") -> None:
    """Raises StreamgaugeError when one of `options` (parameter: option) was given, and means nothing here."""
    for name, option in options.items():
        if _is_given(context, name):
            msg = f"{option} is about simulated events, {why}; leave one of the two out"
            raise StreamgaugeError(msg)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
