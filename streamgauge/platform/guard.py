"""Runs one command and ensures that none of its processes outlives the process that requested it.

Usage: `python guard.py GRACE_SECONDS COMMAND...` with the read end of a pipe as standard input. When the pipe closes (its writer has ended,
for any reason), or on SIGTERM or SIGINT, the guard sends SIGTERM to the command, and after GRACE_SECONDS SIGKILL to its process group.
When the command ends by itself, the guard also kills the rest of its process group (such as the JVM of a Spark driver killed with -9), and
exits with the same exit code. This file imports only the standard library, so that a guard is small and starts fast.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1


def signal_pipe(*numbers: int) -> int:
    """The read end of a pipe that receives a byte with the signal's number. The signals have no other effect from now on."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return read_end


def die_with_guard() -> None:
    """Makes Linux kill the command if the guard itself is killed with -9. Other systems have no equivalent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Runs the command given as arguments. Returns its exit code as a shell would."""
    grace_seconds, command = float(sys.argv[1]), sys.argv[2:]
    signals, lifeline = signal_pipe(signal.SIGTERM, signal.SIGINT, signal.SIGCHLD), sys.stdin.fileno()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_guard)  # noqa: PLW1509 - the guard has one thread
    kill_at = None
    while child.poll() is None:
        watched, seconds = ([signals, lifeline], None) if kill_at is None else ([signals], max(0, kill_at - time.monotonic()))
        ready, _, _ = select.select(watched, [], [], seconds)
        came = os.read(signals, 64) if signals in ready else b""
        is_told_to_stop = lifeline in ready or signal.SIGTERM in came or signal.SIGINT in came
        if is_told_to_stop and kill_at is None:
            child.terminate()
            kill_at = time.monotonic() + grace_seconds
        elif not ready:
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
