"""The demo from its wheel, as a newcomer without a clone starts it, with the memory that README.md asks for."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from documents import ROOT
from running import environment, eventually, settings_on_free_ports

from infrastructure.settings import Settings
from pipeline.catalog import queries

MEMORY = 4 * 2**30
UV = ROOT / ".uv" / "bin" / "uv"
QUERIES = {query.name for query in queries(Settings())}


class ControlGroup:
    """Processes that have MEMORY together, and no swap."""

    def __init__(self) -> None:
        root = Path("/sys/fs/cgroup")
        self._is_new = (root / "cgroup.controllers").exists()
        self._folder = (root if self._is_new else root / "memory") / f"streamgauge-{uuid4().hex[:8]}"
        self._folder.mkdir()
        (self._folder / ("memory.max" if self._is_new else "memory.limit_in_bytes")).write_text(str(MEMORY))
        with suppress(OSError):  # a kernel without swap has no such file
            (self._folder / ("memory.swap.max" if self._is_new else "memory.memsw.limit_in_bytes")).write_text(
                "0" if self._is_new else str(MEMORY)
            )

    def enter(self) -> None:
        """Puts this process and those that it starts into the group."""
        (self._folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def killed(self) -> int:
        """How many processes were ended for want of memory."""
        lines = (self._folder / ("memory.events" if self._is_new else "memory.oom_control")).read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def close(self) -> None:
        self._folder.rmdir()


@pytest.fixture
def group():
    try:
        made = ControlGroup()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield made
    eventually(lambda: _closed(made), "every process of the group to end")


def _closed(group):
    try:
        group.close()
    except OSError:
        return False
    return True


@pytest.fixture
def installed(tmp_path):
    """The folder of programs of an environment with the wheel alone."""
    subprocess.run([UV, "build", "--wheel", "--quiet", "--out-dir", tmp_path / "dist", ROOT], check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
    subprocess.run([UV, "pip", "install", "--quiet", "--python", tmp_path / "venv", wheel], check=True)
    return tmp_path / "venv" / "bin"


@pytest.mark.long
def test_the_demo_of_the_wheel_runs_in_four_gigabytes_and_every_number_is_right(installed, group, tmp_path):
    """In a folder that holds a package of the same name as one of ours, and with a blank and an umlaut in STREAMGAUGE_HOME."""
    settings = replace(settings_on_free_ports(tmp_path / "zu hause ä"), real_time=Settings().real_time, driver_java_options="")
    folder = tmp_path / "work"
    (folder / "pipeline").mkdir(parents=True)
    (folder / "pipeline" / "__init__.py").write_text("raise RuntimeError('this one is another')")
    variables = environment(settings) | {"PATH": f"{installed}:/usr/bin:/bin"}

    def run(*arguments, **more):
        command = [installed / "streamgauge", *arguments]
        return subprocess.run(command, cwd=folder, env=variables, preexec_fn=group.enter, text=True, check=False, **more)

    started = run("demo", "--detach", stderr=subprocess.PIPE)
    assert started.returncode == 0, started.stderr
    try:
        eventually(lambda: _have_read(run) >= QUERIES, f"a batch of each of {sorted(QUERIES)}")
        checked = run("verify", "--format", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        verdicts = {verdict["query"]: (verdict["verdict"], verdict["problem"]) for verdict in json.loads(checked.stdout or "[]")}
        assert verdicts == dict.fromkeys(QUERIES, ("right", None)), checked.stderr
    finally:
        run("down", stderr=subprocess.PIPE)
    assert group.killed == 0, "processes were ended for want of memory"


def _have_read(run):
    """The names of the queries that have completed a batch."""
    done = run("status", "--format", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return {status["query"] for status in json.loads(done.stdout or "[]") if status["batch_at"]}
