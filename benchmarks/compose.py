"""Runs docker-compose.yaml and measures it: `PYTHONPATH=tests python -m benchmarks.compose MINUTES`.

Prints the seconds from `up` until every service is healthy and until the first row; then, every tenth of the time, the memory of each
container without its page cache (MiB), and by query the delay of a record until its batch is over (s) and the largest lag (records) since the
line before; and, in the end, what ended meanwhile: exit codes, and what the kernel ended for want of memory.
"""

import sys
import time
from datetime import UTC, datetime, timedelta

from composed import DOWN_SECONDS, UP_SECONDS, Stack, delays, ended_since
from confluent_kafka import KafkaException
from running import free_ports

from benchmarks.measuring import messages, say, say_machine
from contract.domains.nest import NEST_CAMERA_STATS
from contract.text import utc_text

LINES = 10


def main() -> None:
    """Prints a line a figure."""
    span = timedelta(minutes=float(sys.argv[1])) / LINES
    say_machine()
    stack = Stack(*free_ports(4))
    stack.compose("build", seconds=UP_SECONDS)
    try:
        begun = datetime.now(UTC)
        done = stack.compose("up", "--detach", "--wait", "--no-build", seconds=UP_SECONDS)
        if done.returncode != 0:
            sys.exit(done.stderr)
        say(f"every service healthy after {(datetime.now(UTC) - begun).total_seconds():.0f} s")
        while not has_a_row(stack):
            time.sleep(1)
        say(f"a row of nest-camera-stats after {(datetime.now(UTC) - begun).total_seconds():.0f} s at the latest")
        for number in range(LINES + 1):
            until = begun + span * number
            time.sleep(max(0, (until - datetime.now(UTC)).total_seconds()))
            say_state(stack, number * span, until - span)
        say(f"ended: {', '.join(ended_since(begun)) or 'nothing'}; services: {stack.services()}")
    finally:
        stack.compose("--profile", "*", "down", "--volumes", seconds=DOWN_SECONDS)


def say_state(stack: Stack, age: timedelta, since: datetime) -> None:
    """Says what the containers use now, and how far queries were behind `since`."""
    used = stack.memory_mib()
    say(f"minute {age.total_seconds() / 60:.0f}: {sum(used.values())} MiB; " + ", ".join(f"{name} {mib}" for name, mib in used.items()))
    for query, of in sorted(delays(report for report in stack.batches() if report["time"] > utc_text(since)).items()):
        say(f"    {query}: delay p50 {of.p50:.1f}, p95 {of.p95:.1f}, worst {of.worst:.1f} s; lag at most {of.most_lag}")


def has_a_row(stack: Stack) -> bool:
    """Whether nest-camera-stats has written one."""
    try:
        return bool(messages(stack.settings, NEST_CAMERA_STATS.name, last=1))
    except (KafkaException, KeyError):
        return False


if __name__ == "__main__":
    main()
