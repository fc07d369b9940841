"""`make chaos ROUNDS=n SEED=s`: rounds of chaos, on a platform of their own whatever the environment says."""

import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from running import settings_on_free_ports

from chaos.round import Round
from infrastructure.errors import StreamgaugeError

CHECKPOINT_INTERVAL = "5 seconds"
"""The shortest that there is: a round has more checkpoints to be killed before and after."""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="how many rounds")] = 1,
    seed: Annotated[int, typer.Option(help="the same seed plans the same rounds")] = 0,
    seconds: Annotated[float, typer.Option(min=10, help="how long the producers of a round send, not counting their pauses")] = 60,
    home: Annotated[Path, typer.Option(help="where a failed round and its logs are kept")] = Path(".streamgauge/chaos"),
) -> None:
    """Load, kill, stop and freeze the whole application at random moments, then prove that nothing is wrong. Exit code 1 if something is.

    The first round and every second one after it run in Spark's real-time mode, the others in micro-batches.
    """
    failed = 0
    for number in range(1, rounds + 1):
        folder = home.absolute() / f"seed-{seed}-round-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        settings, mode = settings_on_free_ports(folder), "micro-batches"
        if number % 2:
            settings, mode = replace(settings, real_time=CHECKPOINT_INTERVAL), "real-time mode"
        say(f"round {number} of {rounds}, seed {seed}, {mode}, {seconds:.0f} s of load")
        try:
            wrong = Round(settings, random.Random(f"{seed}/{number}"), seconds, say).run()
        except StreamgaugeError as error:
            wrong = [str(error)]
        for line in wrong:
            say(f"  WRONG: {line}")
        say(f"round {number}: " + (f"wrong; its logs are in {folder / 'logs'}" if wrong else "right: nothing lost, doubled or wrong"))
        if not wrong:
            shutil.rmtree(folder, ignore_errors=True)
        failed += bool(wrong)
    say(f"{rounds - failed} of {rounds} rounds right")
    sys.exit(1 if failed else 0)


def say(line: str) -> None:
    """Prints at once, also into a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)
