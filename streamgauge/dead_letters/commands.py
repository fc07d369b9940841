"""The commands dead-letters, dead-letters export and dead-letters replay."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.output.format_option import FormatOption
from infrastructure.output.terminal import err, out
from infrastructure.settings import Settings

if TYPE_CHECKING:  # importing Kafka's client takes a while
    from streamgauge.dead_letters.letters import Choice

dead_letters = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="only those whose reason contains TEXT")]
TopicOption = Annotated[str | None, typer.Option(help="only those of records from this topic")]
SinceOption = Annotated[
    str, typer.Option(metavar="WHERE", help="only those written since then: a time in ISO 8601, or another value of `records --from`")
]


@dead_letters.callback()
def newest(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="how many of the newest to read")] = 20,
    reason: Annotated[str | None, typer.Option(help="of these, print only those whose reason contains this text")] = None,
    output_format: FormatOption = "table",
) -> None:
    """List the newest records that could not be used. For each: the reason, the origin and the first bytes."""
    if context.invoked_subcommand is not None:
        return
    from streamgauge.dead_letters.newest import as_json, as_table, newest_letters

    letters = newest_letters(Settings.from_environment().kafka, limit, reason)
    if output_format == "json":
        sys.stdout.write(as_json(letters) + "\n")
    elif letters:
        out.print(as_table(letters, out.width))
    else:
        out.print("no dead letters" if reason is None else f"none of the newest {limit} dead letters has this reason; --limit reads more")


@dead_letters.command()
def export(reason: ReasonOption = "", topic: TopicOption = None, since: SinceOption = "beginning") -> None:
    """Print dead letters whole. Oldest first, a line of JSON for each, with the record's bytes as Base64."""
    for letter in _choice(reason, topic, since).letters(Settings.from_environment().kafka):
        sys.stdout.write(letter.as_json() + "\n")


@dead_letters.command()
def replay(
    reason: ReasonOption = "",
    topic: TopicOption = None,
    since: SinceOption = "beginning",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count what would be sent, by reason")] = False,  # noqa: FBT002 - an option
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,  # noqa: FBT002
) -> None:
    """Send records to their topics again, when the cause is fixed. Those that were sent before are not sent again."""
    from infrastructure.process.locks import alone
    from infrastructure.storage.removal import confirm
    from infrastructure.text import printable
    from streamgauge.dead_letters.replay import plan_of
    from streamgauge.dead_letters.replay import replay as send

    settings = Settings.from_environment()
    # A second replay might not see the copies of this one yet.
    refusal = f"another replay is running ({settings.home}), and two could send a record twice; wait until it has ended"
    with alone(settings.home / "replay.lock", refusal):
        plan = plan_of(settings.kafka, _choice(reason, topic, since).letters(settings.kafka))
        for why, count in plan.skipped.items():
            err.print(f"not sent, because {why}: {count:,}")
        if not plan.counts:
            out.print("nothing to send")
            return
        summary = ", ".join(f"{count:,} to topic {name}" for name, count in plan.counts_by_topic.items())
        if dry_run:
            out.print(f"would send {summary}")
            for (name, why), count in plan.counts.items():
                out.print(f"  {count:,} of {name}: {printable(why)}")
            return
        confirm(f"send {summary}, again?", yes=yes)
        out.print(f"sent {send(settings.kafka, plan):,}")


def _choice(reason: str, topic: str | None, since: str) -> "Choice":
    from contract.domains import name_in_kafka
    from streamgauge.dead_letters.letters import Choice
    from streamgauge.records.start import Start

    return Choice(reason, None if topic is None else name_in_kafka(topic), Start.of(since, option="--since"))
