"""A process that grades exercises for `streamgauge workshop check`. It stays, and keeps Spark running, so that the next check is quick.

It listens on a Unix socket in a folder that only its user can enter; the file `grader` in the workshop's home names the socket. It ends after
IDLE_SECONDS without a check, and when an exercise computes longer than it may. The next check starts it again, also after a change of the
project's own files.
"""

import contextlib
import importlib
import shutil
import signal
import socket
import sys
import tempfile
import time
from multiprocessing.connection import Client, Connection
from pathlib import Path

from filelock import FileLock

from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.process.stop_signals import postponed_signals
from infrastructure.settings import Settings
from infrastructure.storage.paths import text_of, write_whole
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import PidFile, start_process, stop_process
from streamgauge.workshop.grading import OutOfTime, Verdict, grade
from streamgauge.workshop.labs import ROOT, Lab

IDLE_SECONDS = 1800
_NAME = "grader-of-delta" if HAS_DELTA else "grader"
_PRIVATE = "streamgauge-workshop-"
"""How the name of the folder begins that holds the socket."""
_RETRY_SECONDS = 0.05
_STOP_SECONDS = 5


def home(settings: Settings) -> Path:
    """The workshop's folder: the grader's files, and the data of the labs."""
    return settings.home.absolute() / "workshop"


def ready(settings: Settings) -> Connection:
    """A connection to the process, which is started if it does not run. Spark may still be starting then.

    Raises StreamgaugeError when it does not start.
    """
    folder = home(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "grader.lock"):
        named, pid = folder / _NAME, PidFile(folder / f"{_NAME}.pid")
        if (process := pid.process()) is not None:
            if named.exists() and not _is_older_than_the_project(named):
                with contextlib.suppress(OSError, ValueError):  # it is about to end, or the file is damaged
                    return Client(named.read_text())
            stop_process(process, _STOP_SECONDS)
        if (address := text_of(named)) is not None:
            if (private := Path(address).parent).name.startswith(_PRIVATE):  # else the file is damaged
                shutil.rmtree(private, ignore_errors=True)  # a process that was killed leaves it
            named.unlink()
        log = folder / f"{_NAME}.log"
        log.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", __spec__.name, str(named)]
        with postponed_signals():
            pid.write(start_process(command, log).pid, str(named))
        while not named.exists():
            if pid.process() is None:
                msg = f"the process that checks exercises has ended while it started: {log_tail(log, 1)}; see {log}"
                raise StreamgaugeError(msg)
            time.sleep(_RETRY_SECONDS)
        return Client(named.read_text())


def graded(lab: Lab, settings: Settings, seconds: int) -> Verdict:
    """The verdict on the learner's exercise. seconds: of CPU time that it may take in Python.

    Raises StreamgaugeError when the process ends without an answer.
    """
    try:
        with ready(settings) as connection:
            connection.send((lab, lab.exercise.absolute(), seconds))
            answer: Verdict | StreamgaugeError = connection.recv()
    except (OSError, EOFError) as error:
        msg = f"the check ended without an answer: does the exercise end Python, or run out of memory? See {home(settings) / f'{_NAME}.log'}, and check again"
        raise StreamgaugeError(msg) from error
    except KeyboardInterrupt:
        if process := PidFile(home(settings) / f"{_NAME}.pid").process():
            stop_process(process, _STOP_SECONDS)
        raise
    if isinstance(answer, StreamgaugeError):
        raise answer
    return answer


def _is_older_than_the_project(named: Path) -> bool:
    """Whether a file of the project, which the process may have loaded, has changed since `named` was written."""
    rooms = ("infrastructure", "contract", "pipeline", "producers", "streamgauge", "tests", "data")
    since = named.stat().st_mtime
    return any(
        path.stat().st_mtime > since for room in rooms for path in (ROOT / room).rglob("*.*") if path.suffix in {".py", ".csv", ".avsc"}
    )


def main() -> None:
    """Serves one check after the other. The first argument: the file that is to name the socket."""
    named = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix=_PRIVATE) as private, socket.socket(socket.AF_UNIX) as server:
        tempfile.tempdir = private  # what the checks write goes with this process
        address = str(Path(private, "socket"))
        server.bind(address)
        server.listen()
        server.settimeout(IDLE_SECONDS)
        write_whole(named, address)
        sys.path.append(str(ROOT / "tests"))
        running = importlib.import_module("running")
        running.forget_surroundings()
        running.shared_spark()
        with contextlib.suppress(TimeoutError, OutOfTime):
            while not running.shared_spark()._jsc.sc().isStopped():  # an exercise may stop it
                with Connection(server.accept()[0].detach()) as connection, contextlib.suppress(EOFError):  # `start` asks for nothing
                    _answer(connection, *connection.recv())
        running.stop_shared_spark()


def _answer(connection: Connection, lab: Lab, exercise: Path, seconds: int) -> None:
    def stop(*_: object) -> None:
        raise OutOfTime(seconds)

    # CPU time: a check may take long on a busy machine, but hardly any of it in Python.
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    answer: Verdict | StreamgaugeError
    try:
        answer = grade(lab, exercise)
    except StreamgaugeError as error:
        answer = error
    finally:
        left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    with contextlib.suppress(BrokenPipeError):  # the learner no longer waits
        connection.send(answer)
    if not left:
        raise OutOfTime(seconds)  # the loop may go on in another thread


if __name__ == "__main__":
    main()
