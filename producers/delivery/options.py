"""Options shared by the commands `streamgauge produce <domain>`, and their validation."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from infrastructure.errors import StreamgaugeError

YEARS = range(2010, 2501)
MAX_SECONDS_BETWEEN = 86_400
MIN_RATE = 0.001
"""The least value of --rate and --speed-up."""

Rate = Annotated[float, typer.Option(min=MIN_RATE, help="Events per second, simulated or recorded.")]
SpeedUp = Annotated[
    float, typer.Option(min=MIN_RATE, help="Seconds of event time per second at --rate: with 60, an hour of events takes a minute.")
]
Unpaced = Annotated[bool, typer.Option("--unpaced", help="Send as fast as possible, with the same event times.")]
Limit = Annotated[
    int | None,
    typer.Option(
        min=0, help="How many events to send; duplicates and corrupt copies add to them.  [default: endless, or all recorded ones]"
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same --seed and --start give the same events and faults.")]
Start = Annotated[datetime | None, typer.Option(help="Event time of the first simulated event, ISO 8601, UTC.  [default: now]")]
Continue = Annotated[bool, typer.Option("--continue", help="Start after the newest event in the topic, if there is one.")]
Late = Annotated[float, typer.Option(min=0, max=1, help="Fraction of the events sent late, but within the watermark.")]
TooLate = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Fraction of the events delayed by two watermarks, so that they come too late. In a shorter stream, they are only late.",
    ),
]
Duplicates = Annotated[float, typer.Option(min=0, max=1, help="Fraction of the events sent twice.")]
Corrupt = Annotated[float, typer.Option(min=0, max=1, help="Fraction of the events that are sent again as a corrupt copy.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one line of JSON on standard output.")]


def existing_file(text: str) -> Any:  # noqa: ANN401 - as `typer.Option`
    """An option that names a file to read. text: its help."""
    return typer.Option(exists=True, dir_okay=False, readable=True, help=text)


def at_most_one(options: dict[str, object]) -> None:
    """Raises StreamgaugeError when more than one of the options is given. options: value by option name."""
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        msg = f"{' and '.join(given)} cannot be used together; leave out {'one' if len(given) == 2 else 'all but one'} of them"  # noqa: PLR2004
        raise StreamgaugeError(msg)


def seconds_between(speed_up: float, rate: float) -> float:
    """The event time between two simulated events, in seconds. Raises StreamgaugeError if it is more than a day."""
    if speed_up / rate > MAX_SECONDS_BETWEEN:
        msg = f"events are {speed_up / rate:g} s of event time apart (--speed-up divided by --rate); expected at most a day"
        raise StreamgaugeError(msg)
    return speed_up / rate


def start_time(start: datetime | None) -> datetime:
    """The time of --start, UTC. Now if it is not given. Raises StreamgaugeError if it cannot be simulated."""
    if start is None:
        return datetime.now(UTC).replace(microsecond=0)
    if start.year not in YEARS:
        msg = f"--start is {start}; expected a time from {YEARS[0]} to {YEARS[-1]}"
        raise StreamgaugeError(msg)
    return start if start.tzinfo else start.replace(tzinfo=UTC)


def refuse_options(context: typer.Context, options: dict[str, str], why: str = "a file holds recorded ones") -> None:
    """Raises StreamgaugeError when one of `options` (parameter: option) was given but does not apply."""
    for name, option in options.items():
        if is_given(context, name):
            msg = f"{option} applies to simulated events only, {why}; leave one of the two out"
            raise StreamgaugeError(msg)


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the option was on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
