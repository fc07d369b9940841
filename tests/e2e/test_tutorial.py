"""docs/tutorial.md, from its first command to its last: each block of commands is run, and each output compared.

A block ```sh is run in one shell, as a reader does. A query and `verify` that are waited for run in this process instead, on the worker's
Spark session. The block ```text that follows is what they print; `...` stands for any text, and alone on a line for any lines. Blank lines
do not count, nor what a slow machine adds: that something is still waited for.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from running import RETRY_SECONDS, environment, few_rows, settings_on_free_ports, streamgauge

from infrastructure.settings import Settings

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
ON_THE_SHARED_SPARK = re.compile(r"streamgauge (run|verify) [^&]*\Z")
END = "end of the block"


class Shell:
    """A bash that keeps its folder, variables and background processes from block to block."""

    def __init__(self, variables, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, commands):
        """What they print. Fails if the last one fails, or if they take too long."""
        self.process.stdin.write(f'{commands}\necho "{END} $?"\n')
        self.process.stdin.flush()
        printed = []
        too_long = threading.Timer(RETRY_SECONDS, self.end)
        too_long.start()
        for line in self.process.stdout:
            if line.startswith(END):
                too_long.cancel()
                assert line == f"{END} 0\n", f"{commands}\nprinted:\n{''.join(printed)}"
                return "".join(printed)
            printed.append(line)
        logs = "".join(f"{log.name}:\n{log.read_text()}" for log in self.folder.glob("*/*.log"))
        pytest.fail(f"the shell ended, or took over {RETRY_SECONDS} s, in:\n{commands}\nwhich printed:\n{''.join(printed)}{logs}")

    def end(self):
        """Ends it and what it has started, in the background too."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture
def settings(tmp_path):
    return replace(settings_on_free_ports(tmp_path), real_time=Settings().real_time)


@pytest.fixture
def shell(settings, tmp_path):
    """A shell in which mktemp makes its folders in `tmp_path`. What it has started is ended."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = Shell(environment(few_rows(settings), PATH=path, TMPDIR=str(tmp_path)), tmp_path)
    yield shell
    for home in tmp_path.glob("*/home"):
        streamgauge("down", settings=replace(settings, home=home))
    shell.end()
    shell.process.wait()


def expected(text):
    """The pattern of an output. How far a line is indented depends on the widest number in its column, such as one of seconds."""
    lines = (line.strip() for line in text.splitlines())
    return re.compile(
        "".join(r"(?:.*\n)*" if line == "..." else rf" *{'.*'.join(map(re.escape, line.split('...')))} *\n" for line in lines)
    )


def plain(printed):
    lines = [line.rstrip() for line in printed.splitlines()]
    return "".join(f"{line}\n" for line in lines if line and not line.lstrip().startswith("waiting for "))


def test_every_command_prints_what_the_tutorial_says(settings, shell, monkeypatch):
    text = TUTORIAL.read_text().replace("127.0.0.1:9092", settings.bootstrap_servers).replace(":8081/", f":{settings.registry_port}/")
    first, *blocks = BLOCK.findall(text)
    shell.run(first[0])
    folder = Path(shell.run("pwd").strip())
    here = replace(settings, home=folder / "home")
    monkeypatch.chdir(folder)
    for commands, output in blocks:
        if ON_THE_SHARED_SPARK.match(commands):
            done = streamgauge(*shlex.split(commands)[1:], settings=here)
            printed = done.stderr + done.stdout
            assert done.returncode == 0, printed
        else:
            printed = shell.run(commands)
        assert not output or expected(output).fullmatch(plain(printed)), f"{commands}\nshould print:\n{output}\nand printed:\n{printed}"
