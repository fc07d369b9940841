"""How a server's start is waited for: as long as it gets on, and no longer. The servers are lines of Python, and real processes."""

import socket
import sys

import pytest
from running import eventually, start_server

from infrastructure.errors import StreamgaugeError
from infrastructure.process import waiting
from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings
from streamgauge.platform import server as servers
from streamgauge.platform.listening import refuse_a_taken_port
from streamgauge.platform.processes import PidFile
from streamgauge.platform.server import EmbeddedServer, Launch

LISTENS = "import socket, time; server = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"
WORKS_FIRST = "import time; ends = time.monotonic() + {seconds}\nwhile time.monotonic() < ends: pass\n"
LOGS_FIRST = "import time\nfor _ in range(int({seconds} * 10)): print('starting', flush=True); time.sleep(0.1)\n"
STALL_SECONDS = 1


class Script(EmbeddedServer):
    name, port_advice, class_path = "test server", "choose another", ()

    def __init__(self, folder, code):
        super().__init__(Settings())
        self.ports = tuple(free_ports(1))
        self.folder, self.log, self.pid_file = folder, folder / "log", PidFile(folder / "pid")
        self.address, self.code = f"127.0.0.1:{self.ports[0]}", code.format(port=self.ports[0], seconds=2 * STALL_SECONDS)

    def answers(self):
        return True

    def _prepare(self):
        return Launch([sys.executable, "-c", self.code], {}, self.log)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Makes a server of some Python; it is stopped in the end."""
    monkeypatch.setattr(servers, "STALL_SECONDS", STALL_SECONDS)
    monkeypatch.setattr(waiting, "REMIND_SECONDS", STALL_SECONDS)
    made = []

    def make(code):
        made.append(Script(tmp_path, code))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize("first", [WORKS_FIRST, LOGS_FIRST])
def test_one_that_works_or_writes_its_log_is_waited_for_and_that_is_said(script, first):
    server, said = script(first + LISTENS), []
    assert server.launch(detached=False)
    server.wait_until_ready(said.append)
    assert server.is_ready()
    assert said, f"the wait took {2 * STALL_SECONDS} s, and nothing was said after {STALL_SECONDS}"
    assert all(f"waiting for the test server to answer at {server.address}" in line for line in said)


def test_one_that_does_nothing_and_does_not_answer_is_given_up(script):
    server = script("import time; time.sleep(600)")
    with pytest.raises(StreamgaugeError, match=f"does not answer at .* has made no progress for {STALL_SECONDS} s"):
        start_server(server)


def test_one_that_ends_is_told_by_its_log(script):
    server = script("raise SystemExit('no memory')")
    with pytest.raises(StreamgaugeError, match=r"test server ended before it answered; .*\nno memory"):
        start_server(server)


def test_one_that_ends_before_it_logs_is_told_by_what_it_printed(script, tmp_path):
    server = script("raise SystemExit('Unrecognized option')")
    server.log = tmp_path / "server.log"
    server.log.write_text("from an earlier run\n")
    server._prepare = lambda: Launch([sys.executable, "-c", server.code], {}, tmp_path / "server.out")
    with pytest.raises(StreamgaugeError, match=r"server\.out:\nUnrecognized option"):
        start_server(server)


def test_a_second_start_finds_the_first(script):
    server = script(LISTENS)
    assert server.launch(detached=False)
    assert not server.launch(detached=False)
    eventually(server.is_ready, "the server to listen")


def test_one_that_another_program_has_started_again_runs(script):
    first, second = script(LISTENS), script(LISTENS)
    assert first.launch(detached=False)
    first.guarded.popen.kill()
    eventually(lambda: first.exit_code is not None, "the end of the first")
    assert second.launch(detached=False)
    assert not first.launch(detached=False)
    assert first.exit_code is None
    second.guarded.stop()
    assert first.exit_code == 0


def test_one_that_was_about_to_end_when_it_was_found_is_started_again_once(script):
    first, second = script("import time; time.sleep(600)"), script(LISTENS)
    assert first.launch(detached=False)
    assert not second.launch(detached=False)
    first.guarded.stop()
    second.wait_until_ready()
    second.guarded.stop()
    with pytest.raises(StreamgaugeError, match="ended before it answered"):
        second.wait_until_ready()


def test_a_taken_port_and_one_that_cannot_be_had_are_named():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            StreamgaugeError, match=f"port {port} on 127.0.0.1 is taken by .*, pid .*; stop that program, or choose another"
        ):
            refuse_a_taken_port("127.0.0.1", port, "choose another")
    with pytest.raises(
        StreamgaugeError, match=rf"port {port} on 192\.0\.2\.1 cannot be listened on \(.+\); correct the address, or choose another"
    ):
        refuse_a_taken_port("192.0.2.1", port, "choose another")
    with pytest.raises(StreamgaugeError, match=rf"port {port} on é{{70}} cannot be listened on \(it is no host name\)"):
        refuse_a_taken_port("é" * 70, port, "choose another")
