"""Ends the child processes of a program that was killed before it could end them itself.

Usage: `python guard.py` with the read end of a pipe as standard input. A line `GROUP GRACE_SECONDS` names a process group to watch over, and
a line `GROUP` one that has ended. When the pipe closes (the program has ended, for any reason), the guard sends SIGTERM to the leader of each
group that is left, and SIGKILL to the whole group once its leader has ended or GRACE_SECONDS have passed.
This file imports only the standard library, so that the guard is small and starts fast.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping

CHECK_SECONDS = 0.1


def main() -> None:
    """Reads the groups until the pipe closes, and then ends them."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the program decides when the guard ends
    groups: dict[int, float] = {}
    for line in sys.stdin:
        group, *grace_seconds = line.split()
        if grace_seconds:
            groups[int(group)] = float(grace_seconds[0])
        else:
            groups.pop(int(group), None)
    end(groups)


def end(groups: Mapping[int, float]) -> None:
    """Ends the processes of `groups` (grace time in seconds by process group)."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(group, signal.SIGTERM)
    began, remaining = time.monotonic(), dict(groups)
    while remaining:
        for group, grace_seconds in list(remaining.items()):
            if not _exists(group) or time.monotonic() - began > grace_seconds:
                del remaining[group]
                kill_group(group)
        time.sleep(CHECK_SECONDS if remaining else 0)


def kill_group(group: int) -> None:
    """Sends SIGKILL to every process of `group`."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # another user has been given the id
        return False
    return True


if __name__ == "__main__":
    main()
