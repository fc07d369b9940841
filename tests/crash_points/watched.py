"""A program that the kernel stops before each of its file operations, in all of its threads and processes.

A seccomp filter passes these system calls to this process, which counts them and lets them go on, or kills the program before one. `strace` counts
the calls of each thread alone, and knows files by whole names only; the JVM has fifty threads and writes files with random names.
"""

import ctypes
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

_LIBC = ctypes.CDLL(None, use_errno=True)
_SECCOMP, _NEW_LISTENER, _NO_NEW_PRIVILEGES = 317, 8, 38
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ARGUMENTS = 16
"""Where a system call's arguments begin in what the filter sees."""

# The numbers of Linux on x86_64. By number: the name, and the arguments that are paths, each after that of its folder, if there is one.
_OF_PATHS = {
    82: ("rename", ((None, 0), (None, 1))),
    264: ("rename", ((0, 1), (2, 3))),
    316: ("rename", ((0, 1), (2, 3))),
    87: ("delete", ((None, 0),)),
    263: ("delete", ((0, 1),)),
    84: ("delete", ((None, 0),)),
    83: ("create folder", ((None, 0),)),
    258: ("create folder", ((0, 1),)),
    76: ("cut", ((None, 0),)),
}
_OPENS = {2: ("open", ((None, 0),)), 257: ("open", ((0, 1),))}
"""Only those for writing."""
_OF_FILES = {74: "synchronize", 75: "synchronize", 77: "cut", 1: "write", 18: "write", 20: "write", 46: "write"}
"""The file is the first argument."""
_ONE_BUFFER, _AT_OFFSET, _VECTOR = (1, 18), 18, 20

_CHANGES = {0: "Produce", 8: "OffsetCommit", 19: "CreateTopics", 20: "DeleteTopics", 21: "DeleteRecords", 22: "InitProducerId"}
"""Requests that change something in Kafka, by their number in its protocol."""


class End(Enum):
    """How a program ends at a point. After a power failure, what it has written and not synchronized is gone."""

    KILL = "kill"
    TORN = "torn write"
    POWER = "power failure"


class Point(NamedTuple):
    """Before the n-th occurrence, from 1, of an operation in a run; or, in a write that is torn, after its first half."""

    operation: str
    occurrence: int
    end: End = End.KILL


def points_of(operations: Sequence[str]) -> list[Point]:
    """Each point of a run with these operations, in order."""
    seen: Counter[str] = Counter()
    seen_at = []
    for operation in operations:
        seen[operation] += 1
        seen_at.append(Point(operation, seen[operation]))
    return seen_at


def ends_of(points: Sequence[Point]) -> list[Point]:
    """These points of a run, with each way in which it can end there."""
    return [*points, *torn_of(points), *(point._replace(end=End.POWER) for point in points)]


def torn_of(points: Sequence[Point]) -> list[Point]:
    """The points in the middle of each write to a file that is written in its place. What is renamed later, nobody has read before."""
    renamed = {point.operation.split()[1] for point in points if point.operation.startswith("rename")}
    writes = [point for point in points if point.operation.startswith("write")]
    return [point._replace(end=End.TORN) for point in writes if point.operation.partition(" ")[2] not in renamed]


class Torn(NamedTuple):
    """The first half of a write, and where in the file it goes."""

    path: Path
    offset: int
    half: bytes

    def leave(self) -> None:
        with self.path.open("r+b") as file:
            file.seek(self.offset)
            file.write(self.half)


class Unsynchronized(NamedTuple):
    """A file of which no more than its first bytes are on the disk."""

    path: Path
    length: int

    def lose(self) -> None:
        if self.path.is_file() and self.path.stat().st_size > self.length:
            os.truncate(self.path, self.length)


Losses = Sequence[Unsynchronized]
BeforeEach = Callable[[Torn | None, Losses], None]


class Watched:
    """A program with pipes. operations: what it has done since the last `arm`; killed_at: the point before which it was killed.

    folder: whose files are watched, except those below `but`. port: of the broker whose requests are watched.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, port: int, but: Sequence[str] = ()) -> None:
        self._is_watched = re.compile(f"{re.escape(str(folder))}/(?!({'|'.join(but)})(/|$))(.+)").fullmatch
        self._port = port
        self._answering = threading.Lock()
        self.arm(None)
        # A filter belongs to a thread and what that starts.
        start = threading.Thread(target=self._start, args=(command, environment))
        self._is_filtered = threading.Event()
        start.start()
        self._is_filtered.wait()
        if self._listener < 0:
            start.join()
            msg = "the kernel does not pass system calls to another process"
            raise OSError(msg)
        self._answers = threading.Thread(target=self._answer, daemon=True)
        self._answers.start()
        start.join()

    def arm(self, point: Point | None, before_each: BeforeEach = lambda _torn, _losses: None) -> None:
        """Forgets all operations, and takes all files for synchronized; kills the program at this point.

        before_each: called before each operation, with what is torn if it is a write, and what a power failure would lose; the program waits.
        """
        with self._answering:
            self._point, self.killed_at, self.operations, self._before_each = point, None, list[str](), before_each
            self._on_disk = dict[str, int]()  # of files that are not synchronized, how many bytes are

    def end(self) -> None:
        """Kills the program, and everything that it has started."""
        self._kill()
        self.popen.communicate()
        self._answers.join()

    def _kill(self) -> None:
        if self.popen.returncode is not None:
            return  # its number may be another program's
        with suppress(psutil.NoSuchProcess):
            program = psutil.Process(self.popen.pid)
            for process in (program, *program.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def _start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        program = _program()
        code = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("H6xQ", len(program) // 8, ctypes.addressof(code))
        _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        self._listener = _LIBC.syscall(_SECCOMP, 1, _NEW_LISTENER, header)
        self._is_filtered.set()
        if self._listener < 0:
            return
        self.popen = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _answer(self) -> None:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, -10)  # of this thread, for which each write of the program waits
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while not poll.poll()[0][1] & select.POLLHUP:
            with suppress(OSError):  # the caller has ended meanwhile
                called = bytearray(80)
                fcntl.ioctl(self._listener, _RECEIVE, called)
                number, thread, _, call, _, _, *arguments = struct.unpack("QIIiIQ6Q", called)
                with self._answering:
                    goes_on = self._goes_on(thread, call, arguments)
                if goes_on:
                    fcntl.ioctl(self._listener, _SEND, struct.pack("QqiI", number, 0, 0, _CONTINUE))
        os.close(self._listener)

    def _goes_on(self, thread: int, call: int, arguments: Sequence[int]) -> bool:
        if self.killed_at is not None:
            return False
        found, torn, caller = None, None, _Caller(thread)
        with suppress(OSError):  # such as a file that is closed: the call will fail
            found = self._operation(caller, call, arguments)
            torn = caller.torn(call, arguments) if found and found[0].startswith("write") else None
        if found is None:
            return True
        operation, name, paths = found
        losses = [Unsynchronized(Path(path), length) for path, length in self._on_disk.items()]
        self.operations.append(operation)
        self._before_each(torn, losses)
        if self._point is None or self._point[:2] != (operation, self.operations.count(operation)):
            self._follow(name, paths)
            return True
        self.killed_at = self._point
        self._kill()  # meanwhile, each other operation waits
        if self._point.end is End.TORN and torn:
            torn.leave()
        if self._point.end is End.POWER:
            for loss in losses:
                loss.lose()
        return False

    def _follow(self, name: str, paths: Sequence[str]) -> None:
        """Notes what an operation leaves unsynchronized."""
        match name:
            case "write":
                self._on_disk.setdefault(paths[0], Path(paths[0]).stat().st_size if Path(paths[0]).exists() else 0)
            case "synchronize" | "delete":
                self._on_disk.pop(paths[0], None)
            case "rename":
                source, target = paths
                self._on_disk.pop(target, None)
                for path in [path for path in self._on_disk if f"{path}/".startswith(f"{source}/")]:
                    self._on_disk[target + path.removeprefix(source)] = self._on_disk.pop(path)

    def _operation(self, caller: "_Caller", call: int, arguments: Sequence[int]) -> tuple[str, str, Sequence[str]] | None:
        """What is watched of a system call: the operation, its name, and the paths of its files."""
        if call in _OF_FILES:
            file = caller.file(arguments[0])
            if file.startswith("socket:") and _OF_FILES[call] == "write":
                request = caller.request(call, arguments) if _is_to(file, self._port) else None
                return (f"send {_CHANGES[request]} to Kafka", "send", ()) if request in _CHANGES else None
            name, paths = _OF_FILES[call], [file]
        else:
            name, places = (_OF_PATHS | _OPENS)[call]
            paths = [caller.path(folder if folder is None else arguments[folder], arguments[path]) for folder, path in places]
        if (name == "create folder" and os.path.lexists(paths[0])) or (name == "delete" and not os.path.lexists(paths[0])):
            return None  # it changes nothing
        found = [self._is_watched(path) for path in paths]
        return (f"{name} {' to '.join(_plain(path[3]) for path in found if path)}", name, paths) if any(found) else None


@cache
def refusal() -> str | None:
    """Why no program can be watched here, such as in a sandbox that is watched itself. None if one can."""
    if (sys.platform, os.uname().machine) != ("linux", "x86_64"):
        return "not possible on this machine: the system calls are those of Linux on x86_64"
    with TemporaryDirectory() as folder:
        try:
            watched = Watched(["touch", f"{folder}/file"], os.environ, Path(folder), port=0)
        except OSError as error:
            return f"not possible on this machine: {error}"
        with suppress(subprocess.TimeoutExpired):  # a kernel before 5.5 cannot let a call go on
            watched.popen.communicate(timeout=60)
        watched.end()
        return None if watched.operations == ["open file"] else "not possible on this machine: the kernel shows no operations of others"


class _Caller:
    """The thread that calls, which waits."""

    def __init__(self, thread: int) -> None:
        self._of = f"/proc/{thread}"

    def file(self, number: int) -> str:
        return str(Path(f"{self._of}/fd/{number}").readlink())

    def path(self, folder: int | None, address: int) -> str:
        path = self._memory(address, 4096).partition(b"\0")[0].decode()
        is_at_work = folder is None or folder & 0xFFFFFFFF == 0xFFFFFF9C
        return os.path.normpath(Path(Path(f"{self._of}/cwd").readlink() if is_at_work else self.file(folder or 0), path))

    def torn(self, call: int, arguments: Sequence[int]) -> Torn:
        """The first half of what it writes to a file."""
        number, address, length, offset, *_ = arguments
        if call == _VECTOR:
            buffers = struct.iter_unpack("QQ", self._memory(address, 16 * length))
            content = b"".join(self._memory(*buffer) for buffer in buffers if buffer[1])
        else:
            content = self._memory(address, length)
        path = Path(self.file(number))
        if call != _AT_OFFSET:
            facts = dict(line.split(":\t") for line in Path(f"{self._of}/fdinfo/{number}").read_text().splitlines() if ":\t" in line)
            offset = path.stat().st_size if int(facts["flags"], 8) & os.O_APPEND else int(facts["pos"])
        return Torn(path, offset, content[: len(content) // 2])

    def request(self, call: int, arguments: Sequence[int]) -> int:
        """The number of a request in Kafka's protocol, which stands behind its length."""
        if call in _ONE_BUFFER:
            start = self._memory(arguments[1], 6)
        else:
            vector = arguments[1] if call == _VECTOR else struct.unpack("Q", self._memory(arguments[1] + 16, 8))[0]
            first, length, second = struct.unpack("QQQ", self._memory(vector, 24))
            start = self._memory(first, min(length, 6))
            start += self._memory(second, 6 - len(start)) if len(start) < 6 else b""
        return int.from_bytes(start[4:6], "big")

    def _memory(self, address: int, length: int) -> bytes:
        with open(f"{self._of}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - Path.open costs a second of a run
            memory.seek(address)
            return memory.read(length)


@cache
def _is_to(socket: str, port: int) -> bool:
    """Whether a socket, named as in /proc, is a connection to this port."""
    lines = (line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:])
    return any(f"socket:[{fields[9]}]" == socket and int(fields[2].rpartition(":")[2], 16) == port for fields in lines)


def _plain(path: str) -> str:
    """A path without what is random or a number in it."""
    random = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]+(?=\.partial)"
    return re.sub(r"(?<![A-Za-z])\d+", "N", re.sub(random, "*", re.sub(r"\.TID\d+", "", path)))


def _program() -> bytes:
    """The filter: which system calls are passed on."""
    lines = [(_LOAD, 0, 0, 0)]
    for call in (*_OF_PATHS, *_OF_FILES):
        lines += [(_IF_EQUAL, 0, 1, call), (_RETURN, 0, 0, _NOTIFY)]
    for call, (_, ((_, path),)) in _OPENS.items():
        flags = _ARGUMENTS + 8 * (path + 1)
        lines += [(_IF_EQUAL, 0, 4, call), (_LOAD, 0, 0, flags), (_IF_ANY_BIT, 0, 1, os.O_WRONLY | os.O_RDWR)]
        lines += [(_RETURN, 0, 0, _NOTIFY), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in (*lines, (_RETURN, 0, 0, _ALLOW)))
