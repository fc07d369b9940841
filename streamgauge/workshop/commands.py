"""The command `streamgauge workshop`: learn by doing, in labs whose checks say what came and what was expected."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.lake_environment import continue_with_delta
from infrastructure.output.terminal import err, out, warn
from infrastructure.settings import Settings
from streamgauge.workshop import labs, room
from streamgauge.workshop.grading import Verdict
from streamgauge.workshop.labs import Lab

workshop = typer.Typer(help="Learn by doing, with labs that tests check.", rich_markup_mode=None)
Number = Annotated[int, typer.Argument(metavar="N", help="the number of the lab", show_default=False)]


@workshop.callback(invoke_without_command=True)
def listed(context: typer.Context) -> None:
    """Without a command: list the labs and how far you are."""
    if context.invoked_subcommand is not None:
        return
    every = labs.all_labs()
    for lab in every:
        out.print(f"{lab.number:2}  {lab.title:{max(len(lab.title) for lab in every)}}  {lab.state}".rstrip())
    left = [lab for lab in every if lab.state != "done"]
    if following := next((lab for lab in left if lab.state), None) or next(iter(left), None):
        out.print(f"\nnext: streamgauge workshop {'check' if following.state else 'start'} {following.number}")


@workshop.command()
def start(number: Number) -> None:
    """Copy the exercise of a lab to my-workshop/. Edit it there."""
    from streamgauge.workshop import grader

    lab = labs.lab_of(number)
    _continue_for(lab)
    note = "" if lab.start() else " (started before; your file is as you left it)"
    _fetch_jars()
    grader.ready(Settings.from_environment()).close()  # Spark starts while the learner reads
    out.print(f"lab {lab.number}: {lab.title}{note}")
    out.print(f"  read   {_shown(lab, 'README.md')}\n  edit   {lab.exercise}\n  check  streamgauge workshop check {lab.number}")
    _tell_the_trainer(lab)


@workshop.command()
def check(
    number: Number, seconds: Annotated[int, typer.Option(min=1, help="limit on the CPU time of your Python code, in seconds")] = 30
) -> None:
    """Run the checks of a lab on your file. The first check that fails shows the actual and the expected result. Exit code 1 if one fails."""
    from streamgauge.workshop import grader, product

    lab = labs.lab_of(number)
    lab.check_started()
    _continue_for(lab)
    _fetch_jars()
    settings = Settings.from_environment()
    with err.status("checking; the first check starts Spark"):
        verdict = grader.graded(lab, settings, seconds)
    if product.asks_the_audit(lab):
        verdict = product.with_audit(lab, verdict, settings)
    for line in result_lines(lab, verdict):
        out.print(line)
    if verdict.failure is None:
        lab.mark_passed()
    _tell_the_trainer(lab, verdict.passed, verdict.total)
    sys.exit(verdict.failure is not None)


@workshop.command()
def run(number: Number, once: Annotated[bool, typer.Option("--once", help="process the available records and end")] = False) -> None:  # noqa: FBT002 - an option
    """Run your code in the product. The function of lab 2 or 3 takes the place of the product's own in query nest-camera-stats; lab 12 is a domain, and its demo starts."""
    from streamgauge.workshop import product

    lab = labs.lab_of(number)
    lab.check_started()
    product.run(lab, Settings.from_environment(), once=once)


@workshop.command()
def solution(number: Number) -> None:
    """Print the solution of a lab. Your file stays as it is."""
    from rich.syntax import Syntax

    lab = labs.lab_of(number)
    code = (lab.folder / "solution.py").read_text()
    if out.is_terminal:
        out.print(Syntax(code.rstrip(), "python", background_color="default"))
    else:
        typer.echo(code, nl=False)  # for a file or another program, as it is
    err.print(f"\nwhy: {_shown(lab, 'discussion.md')}")


@workshop.command()
def reset(number: Number) -> None:
    """Put the original exercise of a lab in place of yours. Yours is kept next to it."""
    lab = labs.lab_of(number)
    kept = lab.reset()
    out.print(f"{lab.exercise} is as at the start" + (f"; your version is in {kept}" if kept else ""))


@workshop.command()
def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="the address that the trainer shows", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="the name or number that the page shows", show_default=False)],
) -> None:
    """Show the trainer how far you are. From now on, `start` and `check` send the trainer's page which lab and check you are at, and nothing else."""
    room.join(url, name)
    out.print(f"the page at {url} shows {name}; `streamgauge workshop leave` ends it")


@workshop.command()
def leave() -> None:
    """Leave the page of the trainer."""
    url = room.leave()
    out.print(f"the page at {url} shows you no more" if url else "no page shows you")


@workshop.command()
def serve(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="the port to serve at")] = 9466,
    host: Annotated[str, typer.Option(help="the address to serve at; 0.0.0.0 lets other machines connect")] = "127.0.0.1",
) -> None:
    """Serve the trainer's page: who is at which lab. It shows those who have joined, until it is stopped."""
    from streamgauge.platform import http_server
    from streamgauge.platform.listening import url_of
    from streamgauge.workshop.room_page import Room

    out.print(f"the page is at {url_of(host, port)}; Ctrl-C ends it")
    http_server.run(Room(labs.all_labs()).app(host), host, port)


@workshop.command(name="break")
def break_secretly(seed: Annotated[int | None, typer.Option(help="choose the same fault on each machine")] = None) -> None:
    """Break the running demo with a random fault. You then name and repair it. See workshop/run-it.md."""
    from streamgauge.workshop import breaking
    from streamgauge.workshop.faults import FAULTS

    breaking.play(breaking.drawn(seed), Settings.from_environment())
    out.print("something is wrong now. When you know what: `streamgauge workshop diagnose FAULT`, with one of these names")
    out.print(f"  {', '.join(FAULTS)}")


@workshop.command()
def diagnose(
    fault: Annotated[str | None, typer.Argument(help="the name of the fault that you have found", show_default=False)] = None,
    give_up: Annotated[bool, typer.Option("--give-up", help="say what the fault is, where it shows, and how to repair it")] = False,  # noqa: FBT002 - an option
) -> None:
    """Name the fault that `break` has made. Exit code 1 if it is another, or not repaired yet."""
    from streamgauge.workshop import breaking
    from streamgauge.workshop.faults import FAULTS

    settings = Settings.from_environment()
    if (played := breaking.played(settings)) is None:
        raise breaking.nothing_is_broken()
    name = played.name if give_up else fault
    if name is None:
        out.print(f"since {played.at:%H:%M} UTC, one of these is the case: {', '.join(FAULTS)}")
        return
    check_names("fault", [name], FAULTS)
    if name != played.name:
        out.print(f"no. With {name}, this would show: {FAULTS[name].signs}")
        sys.exit(1)
    if give_up:
        out.print(played.fault.told)
        return
    out.print(f"right. {played.fault.cause}")
    if remaining := list(breaking.remains(name, settings)):
        out.print("It is not repaired yet:")
        for line in remaining:
            out.print(f"  {line}")
        sys.exit(1)
    breaking.forget(settings)
    out.print("It is repaired: the queries run, and `verify` finds each row right.")


def _tell_the_trainer(lab: Lab, passed: int = 0, total: int = 0) -> None:
    try:
        room.report(lab.number, passed, total)
    except StreamgaugeError as error:
        warn(str(error))


def break_(
    fault: Annotated[str | None, typer.Argument(help="the name of the fault; without it, all are listed", show_default=False)] = None,
    undo: Annotated[bool, typer.Option("--undo", help="undo what the last fault has done, as far as possible")] = False,  # noqa: FBT002 - an option
    page: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65_535, help="serve a page with a button for each fault at this port of 127.0.0.1"),
    ] = None,
) -> None:
    """Break the running demo with a fault of your choice. Prints the signs of the fault, and how to repair it."""
    from streamgauge.workshop import breaking
    from streamgauge.workshop.faults import FAULTS

    if sum((fault is not None, undo, page is not None)) > 1:
        msg = "expected one of FAULT, --undo and --page"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    if undo:
        out.print(
            f"undone: {breaking.undo(settings).name}. `streamgauge status` shows whether all queries run again, and `streamgauge verify` whether each row is right."
        )
    elif page is not None:
        from streamgauge.platform import http_server
        from streamgauge.platform.listening import HOST, refuse_a_taken_port
        from streamgauge.workshop.fault_page import FaultPage

        refuse_a_taken_port(HOST, page, "give --page another port")
        out.print(f"the page is at http://{HOST}:{page}; Ctrl-C ends it")
        http_server.run(FaultPage(settings).app(), HOST, page)
    elif fault is None:
        out.print("\n\n".join(f"{name}\n{one.told}" for name, one in FAULTS.items()))
    else:
        check_names("fault", [fault], FAULTS)
        breaking.play(fault, settings)
        out.print(
            f"{FAULTS[fault].told}\n`streamgauge workshop diagnose {fault}` checks that it is repaired, and `streamgauge break --undo` undoes it."
        )


def _continue_for(lab: Lab) -> None:
    if lab.needs_delta:
        continue_with_delta(f"lab {lab.number}")


def result_lines(lab: Lab, verdict: Verdict) -> list[str]:
    """What `check` prints."""
    failure = verdict.failure
    if failure is None:
        discussion = _shown(lab, "discussion.md")
        following = next(
            (f"streamgauge workshop start {later.number}" for later in labs.all_labs() if later.number > lab.number),
            "read workshop/run-it.md",
        )
        passed = f"lab {lab.number}: all {verdict.total} checks pass"
        return [passed, f"read {discussion}: why, and what goes wrong in production", f"next: {following}"]
    which = f"check {verdict.passed + 1} of {verdict.total} fails" if verdict.total else "cannot be checked"
    lines = [f"lab {lab.number}: {which}", "", f"{failure.what}.", "", failure.text]
    if failure.where:
        lines += ["", f"line: {failure.where.removeprefix(f'{Path.cwd()}/')}"]
    if failure.hint:
        lines += ["", f"hint: {failure.hint}"]
    if failure.printed:
        lines += ["", "your code printed:", failure.printed.rstrip()]
    return lines


def _shown(lab: Lab, name: str) -> str:
    return str((lab.folder / name).relative_to(labs.ROOT))


def _fetch_jars() -> None:
    """Here and not in the process that grades, so that the learner sees the download. Refuses an installation without the development tools."""
    import importlib.util

    from infrastructure.java import jars

    if importlib.util.find_spec("pytest") is None:
        msg = "the checks need the development tools, which are not installed; run `make setup`"
        raise StreamgaugeError(msg)
    settings = Settings.from_environment()
    for bundle in (*jars.SPARK, "s3"):
        if jars.missing(bundle, settings):
            jars.fetch(bundle, settings)
