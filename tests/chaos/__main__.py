"""`make chaos ROUNDS=n SEED=s`: rounds of chaos, on a platform of their own whatever the environment says."""

import random
import shutil
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
from running import settings_on_free_ports

from chaos.disk import small_disk
from chaos.faults import possible
from chaos.plan import Kind, kinds_of_rounds
from chaos.session import Session
from chaos.system import System
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

CHECKPOINT_INTERVAL = "5 seconds"
"""The shortest that there is: a round has more checkpoints to be killed before and after."""
ROUNDS_OF_A_SESSION = 25
"""So many rounds are made on one system, then a new one is started: each recount takes longer than the one before."""


def main(
    rounds: Annotated[int, typer.Option(min=1, help="how many rounds")] = 1,
    seed: Annotated[int, typer.Option(help="the same seed plans the same rounds")] = 0,
    seconds: Annotated[float, typer.Option(min=5, help="how long the producers of a round send, not counting their pauses")] = 10,
    home: Annotated[Path, typer.Option(help="where the data and logs of a failed session are kept")] = Path(".streamgauge/chaos"),
) -> None:
    """Break the whole application under load in every way, then prove that nothing is wrong. Exit code 1 if something is.

    Half of the rounds are in Spark's real-time mode, the others in micro-batches.
    """
    right = done = 0
    for session in count(1):
        if done == rounds:
            break
        size = min(ROUNDS_OF_A_SESSION, rounds - done, -(-rounds // 2))
        mode = "real-time mode" if session % 2 else "micro-batches"
        say(f"session {session}, seed {seed}, {mode}: rounds {done + 1} to {done + size} of {rounds}")
        folder = home.absolute() / f"seed-{seed}-session-{session}"
        shutil.rmtree(folder, ignore_errors=True)
        with small_disk(folder / "disk") as has_disk:
            kinds = possible(has_disk=has_disk)
            if left_out := [kind.value for kind in Kind if kind not in kinds]:
                say(f"not possible on this machine: {', '.join(left_out)}")
            settings = settings_on_free_ports(folder / "disk" / "home")
            if session % 2:
                settings = replace(settings, real_time=CHECKPOINT_INTERVAL)
            right_ones = run(settings, folder / "logs", f"{seed}/{session}", size, seconds, kinds)
            if right_ones < size:
                shutil.copytree(folder / "disk", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tmp", "filler"))
                say(f"its data and logs are in {folder}")
        if right_ones == size:
            shutil.rmtree(folder, ignore_errors=True)
        right, done = right + right_ones, done + size
    say(f"{right} of {rounds} rounds right")
    sys.exit(0 if right == rounds else 1)


def run(settings: Settings, logs: Path, seed: str, rounds: int, seconds: float, kinds: list[Kind]) -> int:
    """Runs a session; returns how many rounds were right before the first that was not. With it, the session ends."""
    dealt, right, wrong = kinds_of_rounds(random.Random(seed), kinds), 0, list[str]()
    try:
        with System(settings, logs) as system:
            chaos = Session(system, say)
            while right < rounds and not wrong:
                wrong = chaos.round(random.Random(f"{seed}/{right}"), next(dealt), seconds)
                if not wrong and right == rounds - 1:
                    wrong = chaos.end()
                if not wrong:
                    right += 1
                    say(f"round {right}: right")
    except StreamgaugeError as error:
        wrong = [str(error)]
    for line in wrong:
        say(f"  WRONG: {line}")
    return right


def say(line: str) -> None:
    """Prints at once, also into a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)
