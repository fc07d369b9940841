"""What a day costs in one run, and in a process that runs all day: `PYTHONPATH=tests python -m benchmarks.daily`.

CPU seconds of the pipeline alone, for the Nest queries over DOCUMENTS documents, one a second. The process that runs all day is measured for
SAMPLE_SECONDS at that rate, after WARM_UP_SECONDS, and its day is calculated from them.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from running import environment

from benchmarks.measuring import ME, cpu_seconds, fresh_platform, say, say_machine, unit_seconds
from infrastructure.settings import Settings

DOCUMENTS = DAY_SECONDS = 86_400
WARM_UP_SECONDS, SAMPLE_SECONDS = 120, 300
QUERIES = ("nest-camera-stats", "nest-camera-status", "nest-archive", "nest-dead-letters")


def main() -> None:
    """Prints a line a figure."""
    say_machine()
    with fresh_platform() as settings:
        once = in_one_run(settings)
    with fresh_platform() as settings:
        all_day = in_a_day(settings)
    for what, seconds in (("one run of a day's documents", once), ("a process that runs all day", all_day)):
        say(f"{what}: {seconds:,.0f} CPU s, {seconds / unit_seconds():,.0f} units")
    say(f"ratio: {all_day / once:,.0f}")


def in_one_run(settings: Settings) -> float:
    """CPU seconds of `run --once` over a day of documents."""
    command = [*ME, "produce", "nest", "--unpaced", "--limit", str(DOCUMENTS), "--start", "2026-01-01T00:00:00Z", "--speed-up", "100"]
    subprocess.run(command, env=environment(settings), capture_output=True, check=True)
    used = 0.0
    with beside("run", *QUERIES, "--once", settings=settings) as pipeline:
        while pipeline.poll() is None:
            with suppress(psutil.NoSuchProcess):
                used = max(used, cpu_seconds(pipeline.pid))
            time.sleep(0.1)
    return used


def in_a_day(settings: Settings) -> float:
    """CPU seconds of a day of `run` at one document a second, from a sample."""
    with beside("produce", "nest", "--rate", "1", settings=settings), beside("run", *QUERIES, settings=settings) as pipeline:
        time.sleep(WARM_UP_SECONDS)
        before, since = cpu_seconds(pipeline.pid), time.monotonic()
        time.sleep(SAMPLE_SECONDS)
        return (cpu_seconds(pipeline.pid) - before) / (time.monotonic() - since) * DAY_SECONDS


@contextmanager
def beside(*arguments: str, settings: Settings) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that runs until the end of the block."""
    with subprocess.Popen([*ME, *arguments], env=environment(settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
