"""The demo in the background: `streamgauge demo --detach` starts it, and `streamgauge down` stops it."""

import subprocess
import time
from collections.abc import Sequence

from infrastructure.process.logs import rotate
from infrastructure.process.waiting import RETRY_SECONDS, Say
from infrastructure.settings import Settings
from streamgauge.demo.services import STOP_SECONDS
from streamgauge.platform import server
from streamgauge.platform.log_file import Log
from streamgauge.platform.processes import PidFile, start_process, stop_process

EVERYTHING_RUNS = "everything runs"
"""The message of the demo when each part is ready, and its queries have begun."""
_WAYS = "in the background: `streamgauge logs demo --follow` shows what it says, and `streamgauge down` stops it"


def pid_file(settings: Settings) -> PidFile:
    """Names the process of the demo that runs, in the background or not."""
    return PidFile(settings.home / "demo.pid")


def start(command: Sequence[str], settings: Settings, say: Say) -> int:
    """Starts the demo by `command`, and says what it says. Returns 0 as soon as everything runs, or the demo's exit code if it ends before.

    An interrupt leaves it running, and says so.
    """
    path = settings.logs / "demo.out"
    rotate(path)
    before_bytes = path.stat().st_size if path.exists() else 0
    process = start_process(command, path)
    if pid_file(settings).process() is None:  # otherwise `down` would find none in the demo's first second
        pid_file(settings).write(process.pid, "demo")
    try:
        return _followed(process, Log(path, before_bytes), say)
    except KeyboardInterrupt:
        say(f"it continues {_WAYS}")
        raise


def _followed(process: subprocess.Popen[bytes], log: Log, say: Say) -> int:
    while True:
        code = process.poll()  # before the log is read, so that its last lines are not missed
        for line in log.lines():
            say(line)
            if EVERYTHING_RUNS in line:
                say(f"it runs {_WAYS}")
                return 0
        if code is not None:
            return code if code >= 0 else 128 - code  # Popen's for a signal is its negative number
        time.sleep(RETRY_SECONDS)


def stop(settings: Settings) -> bool:
    """Stops the demo and waits for its end. False if none runs."""
    process = pid_file(settings).process()
    if process is not None:
        stop_process(process, STOP_SECONDS + server.STOP_SECONDS)
    return process is not None
