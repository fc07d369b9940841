"""Runs one command and sees to it that nothing of it outlives whoever asked for it.

`python guard.py GRACE_SECONDS COMMAND...` with the read end of a pipe as standard input. When that pipe ends (its writer has gone,
by whatever death), or on SIGTERM or SIGINT, the command gets SIGTERM, and after GRACE_SECONDS its whole process group SIGKILL.
When the command ends by itself, what is left of its group is killed too (the JVM of a Spark driver that was killed with -9, say),
and the guard ends with the same exit code. It is a file of its own that imports the standard library only: a guard is small and starts at once.
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
    """The read end of a pipe that gets a byte, its number, for each of these signals; they have no other effect from now on."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return read_end


def die_with_guard() -> None:
    """Asks Linux to kill the command should the guard itself be killed with -9; elsewhere there is no such thing to ask."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Runs the command of the command line; returns its exit code, as a shell gives it."""
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
