"""`streamgauge produce nest`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from infrastructure import durations
from infrastructure.output.terminal import err
from infrastructure.settings import Settings
from producers.delivery import options

_ONLY_SIMULATED = {"cameras": "--cameras", "speed_up": "--speed-up", "start": "--start"}


def produce(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    cameras: Annotated[
        int, typer.Option(min=1, max=100_000, help="Simulated cameras; data/device_locations.csv locates the first 800.")
    ] = 200,
    rate: options.Rate = 100.0,
    speed_up: options.SpeedUp = 60.0,
    unpaced: options.Unpaced = False,
    limit: options.Limit = None,
    seed: options.Seed = 0,
    start: options.Start = None,
    go_on: options.Continue = False,
    file: Annotated[Path | None, options.existing_file("Replay recorded documents instead, one JSON a line.")] = None,
    late: options.Late = 0.0,
    too_late: options.TooLate = 0.0,
    duplicates: options.Duplicates = 0.0,
    corrupt: options.Corrupt = 0.0,
    json: options.AsJson = False,
) -> None:
    """Produce Works-with-Nest documents of cameras that see people, simulated or recorded."""
    from contract.domains.nest import NEST_LOGS
    from producers.delivery.events import Source
    from producers.delivery.faults import Faults
    from producers.delivery.resume import newest_event_ms
    from producers.delivery.run import Run, deliver
    from producers.nest import simulation
    from producers.nest.recording import event_time_ms, replay

    settings = Settings.from_environment()
    faults = Faults(late, too_late, duplicates, corrupt, durations.seconds(settings.watermark, "STREAMGAUGE_WATERMARK"), seed)
    if file:
        options.refuse_options(context, _ONLY_SIMULATED)
        events = replay(file, limit)
    else:
        memory_seconds = min(simulation.MEMORY_SECONDS, faults.watermark_seconds / 2)
        newest_ms = newest_event_ms(settings, NEST_LOGS.name, event_time_ms, err.print) if go_on else None
        step = options.seconds_between(speed_up, rate)
        begin = options.start_time(start) if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000 + step, UTC)
        events = simulation.simulate(simulation.Simulation(begin, seed, cameras, step, limit, memory_seconds))
    source = Source.RECORDED if file else Source.SIMULATED
    facts = "people_seen", "sightings, each of them once"
    run = Run(settings.kafka, NEST_LOGS.name, *facts, source, faults, simulation.corrupt, None if unpaced else rate, limit)
    deliver(run, events, json=json)
