"""Ports: whether one is free, and which program listens on it."""

import contextlib
import errno
import shlex
import socket
from pathlib import Path

import psutil

from infrastructure.errors import StreamgaugeError
from infrastructure.process.waiting import REQUEST_SECONDS, waiting

HOST = "127.0.0.1"
TEMPORARY_FILES = "-Djava.io.tmpdir="
"""The option by which an embedded server is told where to write temporary files, and is recognized."""
DASHBOARD = "a dashboard of Streamgauge"
_SERVERS = {"kafka": "Kafka broker", "registry": "schema registry"}
"""The embedded servers, by the name of their folder in STREAMGAUGE_HOME."""
PORT_SECONDS = 5
"""How long the port of a killed process may stay taken."""


def accepts_connections(host: str, port: int) -> bool:
    """Whether `port` accepts connections. Much cheaper for the server than a request."""
    try:
        with socket.create_connection((host, port), REQUEST_SECONDS):
            return True
    except OSError:
        return False


def refuse_a_taken_port(host: str, port: int, advice: str) -> None:
    """Raises StreamgaugeError if `port` is taken, with the program that uses it and the `advice`.

    A killed process keeps its ports for a moment after it has disappeared from the process list; this waits for that moment.
    """
    for seconds in waiting(lambda: f"port {port} on {host}", lambda _: None):
        error = _listening_error(host, port)
        if error is None:
            return
        if error.errno != errno.EADDRINUSE:
            msg = f"port {port} on {host} cannot be listened on ({error.strerror}); correct the address, or {advice}"
            raise StreamgaugeError(msg)
        if seconds > PORT_SECONDS or listener(port) is not None:
            msg = f"port {port} on {host} is taken by {described(listener(port))}; stop that program, or {advice}"
            raise StreamgaugeError(msg)


def url_of(host: str, port: int) -> str:
    """The URL of a server there. Raises StreamgaugeError for a host that is no name or address, and for a port that is taken."""
    if not host.strip() or "*" in host:
        msg = f"--host: expected an address or a name, found {host!r}; for all addresses, give 0.0.0.0"
        raise StreamgaugeError(msg)
    refuse_a_taken_port(host, port, "choose another one with --port")
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def described(process: psutil.Process | None) -> str:
    """The process in a message, by name and id. One of Streamgauge's is named with its home."""
    with contextlib.suppress(psutil.Error):
        if process is not None:
            return f"{of_streamgauge(process) or process.name()}, pid {process.pid}"
    return "a program that this user may not see"


def of_streamgauge(process: psutil.Process) -> str | None:
    """A description of a process that Streamgauge started; None for others. A server is recognized by its folder for temporary files."""
    command: list[str] = []
    with contextlib.suppress(psutil.Error):  # also the command of another user's process on macOS
        command = process.cmdline()
    for argument in command:
        parts = Path(argument.removeprefix(TEMPORARY_FILES)).parts
        if parts[-2:] == ("dashboard", "app.py"):
            return DASHBOARD
        if argument.startswith(TEMPORARY_FILES) and parts[-1:] == ("tmp",) and parts[:-1] and parts[-2] in _SERVERS:
            home = Path(*parts[:-2])
            return f"the {_SERVERS[parts[-2]]} of STREAMGAUGE_HOME={home} (`STREAMGAUGE_HOME={shlex.quote(str(home))} streamgauge down` stops it)"
    return None


def listener(port: int) -> psutil.Process | None:
    """The process that listens on `port`. None if there is none, or if this user may not see it."""
    with contextlib.suppress(psutil.Error):
        pids = (of.pid for of in psutil.net_connections("tcp") if of.status == psutil.CONN_LISTEN and of.laddr and of.laddr.port == port)
        return next((psutil.Process(pid) for pid in pids if pid), None)
    for process in psutil.process_iter():  # macOS shows only root all connections at once
        with contextlib.suppress(psutil.Error):
            if any(of.status == psutil.CONN_LISTEN and of.laddr.port == port for of in process.net_connections("tcp")):
                return process
    return None


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen on `port`."""
    return _listening_error(host, port) is None


def _listening_error(host: str, port: int) -> OSError | None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
        except TypeError:
            return OSError(errno.EINVAL, "it is no host name")
    return None
