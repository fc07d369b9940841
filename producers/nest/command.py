"""`streamgauge produce nest`."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from contract.settings import Settings
from contract.terminal import err
from producers.delivery import options
from producers.delivery.options import AsJson, Continue, Corrupt, Duplicates, Late, Limit, Seed, Start, TooLate, Unpaced, Watermark

_ONLY_SIMULATED = {"cameras": "--cameras", "speed_up": "--speed-up", "start": "--start"}


def produce(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    cameras: Annotated[
        int, typer.Option(min=1, max=100_000, help="Simulated cameras; data/device_locations.csv locates the first 800.")
    ] = 200,
    rate: Annotated[float, typer.Option(help="Documents a second.")] = 100.0,
    speed_up: Annotated[
        float, typer.Option(help="Seconds of event time a second of --rate: documents are speed-up / rate seconds apart.")
    ] = 60.0,
    unpaced: Unpaced = False,
    limit: Limit = None,
    seed: Seed = 0,
    start: Start = None,
    go_on: Continue = False,
    file: Annotated[Path | None, options.existing_file("Replay recorded documents instead, one JSON a line.")] = None,
    late: Late = 0.0,
    too_late: TooLate = 0.0,
    duplicates: Duplicates = 0.0,
    corrupt: Corrupt = 0.0,
    watermark: Watermark = None,
    json: AsJson = False,
) -> None:
    """Produce Works-with-Nest documents of cameras that see people, simulated or recorded."""
    from contract.domains.nest import NEST_LOGS
    from producers.delivery.events import Source
    from producers.delivery.resume import newest_event_ms
    from producers.delivery.run import Run, deliver, warn_of_short_stream
    from producers.nest import simulation
    from producers.nest.recording import event_time_ms, replay

    settings = Settings.from_environment()
    options.check_positive(rate=rate, speed_up=speed_up)
    faults = options.faults(late, too_late, duplicates, corrupt, seed=seed, watermark=watermark, default=settings.watermark)
    outages: Counter[str] = Counter()
    if file:
        options.refuse_options(context, _ONLY_SIMULATED)
        events = replay(file, limit)
    else:
        memory_seconds = min(simulation.MEMORY_SECONDS, faults.watermark_seconds / 2)
        newest_ms = newest_event_ms(settings, NEST_LOGS.name, event_time_ms, err.print) if go_on else None
        step = options.seconds_between(speed_up, rate)
        begin = options.start_time(start) if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000 + step, UTC)
        events = simulation.simulate(simulation.Simulation(begin, seed, cameras, step, limit, memory_seconds), outages)
        warn_of_short_stream(faults, limit, step)
    source = Source.RECORDED if file else Source.SIMULATED
    facts = "people_seen", "distinct sightings: device_id, start_time"
    run = Run(settings.kafka, NEST_LOGS.name, *facts, source, faults, simulation.corrupt, None if unpaced else rate, limit)
    deliver(run, events, json=json, more_counts=lambda _: {} if file else simulation.outage_counts(outages))
