"""`streamgauge produce taxi`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from infrastructure import durations
from infrastructure.output.terminal import err
from infrastructure.settings import Settings
from producers.delivery import options

_START = datetime(2024, 3, 1, tzinfo=UTC)
_ONLY_SIMULATED = {"start": "--start", "odd": "--odd", "go_on": "--continue"}


def produce(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    file: Annotated[
        str | None,
        typer.Option(help="Replay a Parquet file of TLC's green taxi trips, at a path or URI (s3://, https://), ordered by drop-off."),
    ] = None,
    month: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m"], metavar="YYYY-MM", help="Download a month from TLC, once, and replay it, such as 2024-03."),
    ] = None,
    speed_up: Annotated[
        float, typer.Option(min=options.MIN_RATE, help="Seconds of event time per second: with 3600, an hour of trips takes a second.")
    ] = 3600.0,
    rate: Annotated[
        float | None, typer.Option(min=options.MIN_RATE, help="Trips per second, regardless of their times; replaces --speed-up.")
    ] = None,
    unpaced: options.Unpaced = False,
    limit: options.Limit = None,
    seed: options.Seed = 0,
    start: Annotated[datetime, typer.Option(help="Event time of the first simulated drop-off, ISO 8601, UTC.")] = _START,
    go_on: options.Continue = False,
    odd: Annotated[
        float, typer.Option(min=0, max=1, help="Fraction of the simulated trips that are unusual: refunds, missing codes, unknown zones.")
    ] = 0.0,
    late: options.Late = 0.0,
    too_late: options.TooLate = 0.0,
    duplicates: options.Duplicates = 0.0,
    corrupt: options.Corrupt = 0.0,
    json: options.AsJson = False,
) -> None:
    """Produce trips of New York's green taxis, simulated or recorded by TLC."""
    from contract.domains.taxi import NYC_TAXI
    from producers.delivery.events import Source
    from producers.delivery.faults import Faults
    from producers.delivery.resume import newest_event_ms
    from producers.delivery.run import Run, deliver
    from producers.taxi import stream
    from producers.taxi.simulation import Simulation

    settings = Settings.from_environment()
    options.at_most_one({"--file": file, "--month": month})
    options.at_most_one({"--speed-up": options.is_given(context, "speed_up"), "--rate": rate, "--unpaced": unpaced})
    faults = Faults(late, too_late, duplicates, corrupt, durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK"), seed)
    if file or month:
        from producers.taxi.download import fetch_month
        from producers.taxi.files import file_at

        options.refuse_options(context, _ONLY_SIMULATED)
        path = file_at(file, settings.endpoint_of(file)) if file else fetch_month(f"{month:%Y-%m}", settings.cache, err)
        source, events = Source.RECORDED, stream.replay(path, err.print, limit)
    else:
        newest_ms = newest_event_ms(settings, NYC_TAXI.name, stream.event_time_ms, err.print) if go_on else None
        begin = options.start_time(start) if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000 + 1, UTC)
        source, events = Source.SIMULATED, stream.simulate(Simulation(begin, seed, limit, odd, newest_ms is None))
    facts = "trips", "trips, each of them once"
    run = Run(settings.kafka, NYC_TAXI.name, *facts, source, faults, stream.corrupt, rate, limit, None if unpaced or rate else speed_up)
    deliver(run, events, json=json, more_counts=stream.trip_counts)
