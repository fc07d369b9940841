"""`streamgauge produce wikimedia`."""

from pathlib import Path
from typing import Annotated

import typer

from infrastructure import durations
from infrastructure.output.terminal import err
from infrastructure.settings import Settings
from infrastructure.text import without_credentials
from producers.delivery import options

_ONLY_SIMULATED = {"speed_up": "--speed-up", "start": "--start"}
_ONLY_PACED = {"rate": "--rate", "unpaced": "--unpaced"}
_CONNECT_SECONDS = 5.0


def produce(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    live: Annotated[bool, typer.Option("--live", help="Read the live stream at WIKIMEDIA_URL, from where the last run ended.")] = False,
    live_or_simulated: Annotated[
        bool,
        typer.Option("--live-or-simulated", help="Read the live stream, without faults; if it does not answer within seconds, simulate."),
    ] = False,
    file: Annotated[Path | None, options.existing_file("Replay recorded changes: server-sent events, or one JSON object a line.")] = None,
    schema: Annotated[
        Path | None, options.existing_file("The Avro schema to write with.  [default: data/schemas/wikimedia-value.avsc]")
    ] = None,
    rate: options.Rate = 50.0,
    speed_up: options.SpeedUp = 1.0,
    unpaced: options.Unpaced = False,
    limit: options.Limit = None,
    seed: options.Seed = 0,
    start: options.Start = None,
    late: options.Late = 0.0,
    too_late: options.TooLate = 0.0,
    duplicates: options.Duplicates = 0.0,
    corrupt: options.Corrupt = 0.0,
    json: options.AsJson = False,
) -> None:
    """Produce changes of Wikimedia's wikis in Avro, simulated, live or recorded."""
    from infrastructure.storage.data_files import data_file
    from producers.delivery.faults import Faults
    from producers.wikimedia import run
    from producers.wikimedia.avro import schema_text
    from producers.wikimedia.live import unreachable
    from producers.wikimedia.simulation import Simulation

    settings = Settings.from_environment()
    options.at_most_one({"--live": live, "--live-or-simulated": live_or_simulated, "--file": file})
    watermark_seconds = durations.seconds(settings.wikimedia_watermark, "STREAMGAUGE_WIKIMEDIA_WATERMARK")
    faults = Faults(late, too_late, duplicates, corrupt, watermark_seconds, seed)
    address = settings.wikimedia_url if live or live_or_simulated else None
    if live_or_simulated and address is not None:
        reason, shown = unreachable(address, settings.wikimedia_user_agent, _CONNECT_SECONDS), without_credentials(address)
        if reason is None:
            err.print(f"live changes from {shown}")
            faults = Faults(watermark_seconds=watermark_seconds)
        else:
            err.print(f"cannot reach {shown} ({reason}): simulated changes")
            address = None
    elif address or file:
        only = _ONLY_SIMULATED | (_ONLY_PACED if address else {})
        options.refuse_options(context, only, "live and recorded ones come with their own times")
    stream = address or file or Simulation(options.start_time(start), seed, options.seconds_between(speed_up, rate), limit)
    written_by = schema_text(schema or data_file("schemas/wikimedia-value.avsc"))
    run.produce(settings, stream, written_by, faults, None if unpaced or address else rate, limit, json=json)
