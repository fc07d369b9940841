"""A command that serves HTTP, and a client of it."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx2
from running import PROCESS_SECONDS, RETRY_SECONDS, environment, eventually

from infrastructure.process.ports import free_ports


@contextmanager
def served(settings, *command, path="", host="127.0.0.1"):
    """A client of the command until the end of the block, when Ctrl-C ends it well. path: of a page that answers."""
    (port,) = free_ports(1)
    started = [sys.executable, "-m", "streamgauge.cli", *command, "--port", str(port), "--host", host]
    process = subprocess.Popen(started, env=environment(settings), stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://[^/;]*", process.stdout.readline())[0]
        with httpx2.Client(base_url=address, trust_env=False, timeout=RETRY_SECONDS) as client:
            eventually(lambda: _answers(client, path), "the server to answer")
            yield client
        process.send_signal(signal.SIGINT)
        assert process.wait(PROCESS_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def _answers(client, path):
    try:
        return client.get(path).is_success
    except httpx2.TransportError:
        return False
