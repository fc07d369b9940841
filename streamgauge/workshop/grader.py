"""A process that grades exercises for `streamgauge workshop check`. It stays, and keeps Spark running, so that the next check is quick.

It listens on a Unix socket in a folder that only its user can enter; the file `grader` in the workshop's home names the socket. It ends after
IDLE_SECONDS without a check, and when an exercise computes longer than it may. The next check starts it again, also after a change of the
project's own files.
"""

import contextlib
import importlib
import json
import shutil
import signal
import socket
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from filelock import FileLock

from contract.errors import StreamgaugeError
from contract.settings import Settings
from streamgauge.platform.processes import PidFile, log_tail, start_process, stop_process
from streamgauge.workshop.grading import Failure, OutOfTime, Verdict, grade
from streamgauge.workshop.labs import ROOT, Lab

IDLE_SECONDS = 1800
_RETRY_SECONDS = 0.05
_STOP_SECONDS = 5


def home(settings: Settings) -> Path:
    """The workshop's folder: the grader's files, and the data of the labs."""
    return settings.home.absolute() / "workshop"


def ready(settings: Settings) -> socket.socket:
    """A connection to the process, which is started if it does not run. Spark may still be starting then.

    Raises StreamgaugeError when it does not start.
    """
    folder = home(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "grader.lock"):
        named, pid = folder / "grader", PidFile(folder / "grader.pid")
        if (process := pid.process()) is not None:
            if named.exists() and not _is_older_than_the_project(named):
                with contextlib.suppress(OSError):  # it is about to end
                    return _connection(named)
            stop_process(process, _STOP_SECONDS)
        if named.exists():
            shutil.rmtree(Path(named.read_text()).parent, ignore_errors=True)  # a process that was killed leaves it
            named.unlink()
        log = folder / "grader.log"
        log.unlink(missing_ok=True)
        pid.write(start_process([sys.executable, "-m", __spec__.name, str(named)], log).pid)
        while not named.exists():
            if pid.process() is None:
                msg = f"the process that checks exercises has ended while it started: {log_tail(log, 1)}; see {log}"
                raise StreamgaugeError(msg)
            time.sleep(_RETRY_SECONDS)
        return _connection(named)


def _connection(named: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(named.read_text())
    return connection


def graded(lab: Lab, settings: Settings, seconds: int) -> Verdict:
    """The verdict on the learner's exercise. seconds: of CPU time that it may take in Python.

    Raises StreamgaugeError when the process ends without an answer.
    """
    try:
        with ready(settings) as connection, connection.makefile("rw") as stream:
            stream.write(json.dumps({"lab": str(lab.folder), "exercise": str(lab.exercise.absolute()), "seconds": seconds}) + "\n")
            stream.flush()
            answer = json.loads(stream.readline() or "{}")
    except OSError:
        answer = {}
    except KeyboardInterrupt:
        if process := PidFile(home(settings) / "grader.pid").process():
            stop_process(process, _STOP_SECONDS)
        raise
    if "error" in answer:
        raise StreamgaugeError(answer["error"])
    if not answer:
        msg = f"the check ended without an answer: does the exercise end Python, or run out of memory? See {home(settings) / 'grader.log'}, and check again"
        raise StreamgaugeError(msg)
    return Verdict(answer["passed"], answer["total"], answer["failure"] and Failure(**answer["failure"]))


def _is_older_than_the_project(named: Path) -> bool:
    """Whether a file of the project, which the process may have loaded, has changed since `named` was written."""
    rooms = ("contract", "pipeline", "producers", "streamgauge", "tests", "data")
    since = named.stat().st_mtime
    return any(
        path.stat().st_mtime > since for room in rooms for path in (ROOT / room).rglob("*.*") if path.suffix in {".py", ".csv", ".avsc"}
    )


def main() -> None:
    """Serves one check after the other. The first argument: the file that is to name the socket."""
    named = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="streamgauge-workshop-") as private, socket.socket(socket.AF_UNIX) as server:
        tempfile.tempdir = private  # what the checks write goes with this process
        address = str(Path(private, "socket"))
        server.bind(address)
        server.listen()
        server.settimeout(IDLE_SECONDS)
        draft = named.with_suffix(".draft")
        draft.write_text(address)
        draft.replace(named)
        sys.path.append(str(ROOT / "tests"))
        running = importlib.import_module("running")
        running.forget_surroundings()
        running.shared_spark()
        with contextlib.suppress(TimeoutError, OutOfTime):
            while not running.shared_spark()._jsc.sc().isStopped():  # an exercise may stop it
                connection, _ = server.accept()
                with connection, connection.makefile("rw") as stream:
                    if request := stream.readline():  # `start` asks for nothing
                        _answer(request, stream)


def _answer(request: str, stream: TextIO) -> None:
    asked = json.loads(request)

    def stop(*_: object) -> None:
        raise OutOfTime(asked["seconds"])

    # CPU time: a check may take long on a busy machine, but hardly any of it in Python.
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, asked["seconds"])
    try:
        answer = asdict(grade(Lab(Path(asked["lab"])), Path(asked["exercise"])))
    except StreamgaugeError as error:
        answer = {"error": str(error)}
    finally:
        left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    with contextlib.suppress(BrokenPipeError):  # the learner no longer waits
        stream.write(json.dumps(answer) + "\n")
        stream.flush()
    if not left:
        raise OutOfTime(asked["seconds"])  # the loop may go on in another thread


if __name__ == "__main__":
    main()
