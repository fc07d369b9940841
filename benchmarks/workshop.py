"""Measures the checks of the workshop on this machine: `PYTHONPATH=tests python -m benchmarks.workshop [N ...]`, every lab by default.

For each lab, with its solution as the answer: CPU seconds of the first check, which starts Spark, and of the next.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from running import environment

from benchmarks.measuring import ME, cpu_seconds, own_settings, say, say_machine, unit_seconds
from infrastructure.settings import Settings
from streamgauge.platform.processes import PidFile, stop_process
from streamgauge.workshop import grader, product
from streamgauge.workshop.labs import Lab, all_labs, lab_of

_STOP_SECONDS = 10


def main() -> None:
    """Prints a line a lab."""
    say_machine()
    for lab in [lab_of(int(number)) for number in sys.argv[1:]] or all_labs():
        with tempfile.TemporaryDirectory() as folder:
            first, following = measure(lab, Path(folder))
        units = ", ".join(f"{seconds / unit_seconds():.0f}" for seconds in (first, following))
        say(f"lab {lab.number}: first check {first:.0f} CPU s, next {following:.1f} CPU s; in units: {units}")


def measure(lab: Lab, folder: Path) -> tuple[float, float]:
    """CPU seconds of the first check and of the next, with a Spark of their own."""
    settings, exercise = own_settings(folder / "home"), folder / lab.exercise
    exercise.parent.mkdir(parents=True)
    shutil.copy(lab.folder / "solution.py", exercise)
    pid = PidFile(grader.home(settings) / "grader.pid")
    try:
        return check_seconds(lab, folder, settings, pid), check_seconds(lab, folder, settings, pid)
    finally:
        if process := pid.process():
            stop_process(process, _STOP_SECONDS)


def check_seconds(lab: Lab, folder: Path, settings: Settings, pid: PidFile) -> float:
    """CPU seconds of a check: of the command, and of the process that runs the tests."""
    before = used_seconds(pid)
    command = [*ME, "workshop", "check", str(lab.number)]
    has_no_kafka = product.asks_the_audit(lab)  # so its last check fails
    subprocess.run(command, cwd=folder, env=environment(settings), check=not has_no_kafka, stdout=subprocess.DEVNULL)
    return used_seconds(pid) - before


def used_seconds(pid: PidFile) -> float:
    """What the commands have used that have ended, and the process that runs the tests, if it runs."""
    ended, process = resource.getrusage(resource.RUSAGE_CHILDREN), pid.process()
    return ended.ru_utime + ended.ru_stime + (cpu_seconds(process.pid) if process else 0)


if __name__ == "__main__":
    main()
