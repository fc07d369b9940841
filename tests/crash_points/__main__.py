"""`make crash-points CASE=...`: kills a program at each point, on a platform of its own."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from running import running_platform, running_registry

from crash_points.cases import CASES
from crash_points.enumeration import Enumeration
from crash_points.page import PAGE, note
from crash_points.watched import End
from infrastructure.settings import Settings


def tried_whole(name: str, platform: Settings, home: Path, most: int | None, only: End | None) -> bool:
    """Tries the points of a case, and says and notes each. Whether all are right."""
    tried, enumeration = [], Enumeration(name, platform, home)
    for one in enumeration.tried(most, only):
        tried.append(one)
        left = "not reached" if one.found is None else one.found
        outcome = "; ".join(one.wrong) or ("right after a reset" if one.after_reset else "right")
        sys.stdout.write(f"{name}: {one.point.end.value}, {one.point.operation} ({one.point.occurrence}): {left}; {outcome}\n")
        sys.stdout.flush()
        note(name, tried, enumeration.points)
    note(name, tried, enumeration.points)  # there may be no torn writes
    return not any(one.wrong for one in tried)


def main(
    case: Annotated[list[str] | None, typer.Argument(help="cases by name; all without one", show_default=False)] = None,
    home: Annotated[Path, typer.Option(help="where the home of each case is")] = Path(".streamgauge/crash-points"),
    most: Annotated[int | None, typer.Option(help="try so many points of each case, evenly spread")] = None,
    only: Annotated[End | None, typer.Option(help="try only this end of the program", show_default=False)] = None,
) -> None:
    """Kill a program before each of its file operations, run it again and verify, and write what was found into the page. Exit code 1 if it is wrong."""
    is_right = [
        tried_whole(name, settings, home.absolute() / name, most, only)
        for platform in running_platform(home.absolute() / "platform")
        for name in case or CASES
        for settings in (running_registry(platform) if CASES[name].needs_registry else [platform])
    ]
    sys.stdout.write(f"the tables are in {PAGE}\n")
    sys.exit(not all(is_right))


if __name__ == "__main__":
    typer.run(main)
