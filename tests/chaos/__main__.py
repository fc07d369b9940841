"""`make chaos ROUNDS=n SEED=s`: rounds of chaos, on a platform of their own whatever the environment says."""

import random
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from running import settings_on_free_ports

from chaos.round import Round
from contract.errors import StreamgaugeError


def main(
    rounds: Annotated[int, typer.Option(min=1, help="how many rounds")] = 1,
    seed: Annotated[int, typer.Option(help="the same seed plans the same rounds")] = 0,
    seconds: Annotated[float, typer.Option(min=10, help="how long the producers of a round send, not counting their pauses")] = 60,
    home: Annotated[Path, typer.Option(help="where a failed round and its logs are kept")] = Path(".streamgauge/chaos"),
) -> None:
    """Load, kill, stop and freeze the whole application at random moments, then prove that nothing is wrong. Exit code 1 if something is."""
    failed = 0
    for number in range(1, rounds + 1):
        folder = home.absolute() / f"seed-{seed}-round-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        say(f"round {number} of {rounds}, seed {seed}, {seconds:.0f} s of load")
        try:
            wrong = Round(settings_on_free_ports(folder), random.Random(f"{seed}/{number}"), seconds, say).run()
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
