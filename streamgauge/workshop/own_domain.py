"""The domain of lab 12 in the product: a copy of the project that has the learner's file, and the domain's other files.

The copy and its command are in the learner's folder, so that the project itself stays as it is. The data is in STREAMGAUGE_HOME, as ever.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import orjson

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from streamgauge.demo.background import pid_file
from streamgauge.workshop.grading import Failure, not_right, not_run
from streamgauge.workshop.labs import ROOT, Lab

LAB, NAME, QUERY = "12-your-own-domain", "bike", "bike-station-stats"
_ROOMS = ("infrastructure", "contract", "producers", "pipeline", "audit", "dashboard", "streamgauge", "data")
_LINE = '    "wikimedia",\n'
"""The last line of the list of domains, in contract/domains/__init__.py."""


def run(lab: Lab, settings: Settings, *, once: bool) -> NoReturn:
    """Makes the copy, and replaces this process by its demo, with events of this domain alone; with `once`, by its query over the available records.

    Raises StreamgaugeError if a demo runs, for it would then run with other files than it has started with.
    """
    if pid_file(settings).process() is not None:
        msg = f"a demo is running in {settings.home}; stop it with `streamgauge down`, or choose another STREAMGAUGE_HOME"
        raise StreamgaugeError(msg)
    _make_copy(lab)
    command = [str(_command(lab)), "demo", "--only", NAME]
    if once:
        subprocess.run([_command(lab), "up"], check=False)  # creates the topics of the domain
        command = [str(_command(lab)), "run", QUERY, "--once"]
    os.execv(command[0], command)  # noqa: S606 - the signals are for the demo


def failure(lab: Lab, settings: Settings) -> Failure | None:
    """What is wrong with the domain in the product: the file that has run is not the learner's, or the audit finds a row wrong. None if all is well."""
    mine = _file(lab)
    if not mine.exists() or mine.read_bytes() != lab.exercise.read_bytes():
        hint = "It runs your domain from the producer to the page. A query that has counted with another transform has to recount from the start."
        return not_run("Your domain runs in the product", lab.number, hint, has_run=mine.exists())
    done = subprocess.run(
        [_command(lab), "verify", QUERY, f"{NAME}-dead-letters", "--format", "json"],
        env={**os.environ, **settings.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found = orjson.loads(done.stdout)
    except ValueError:
        raise StreamgaugeError(done.stderr.strip().removeprefix("error: ")) from None
    return not_right(found, QUERY, str(_command(lab)))


def _make_copy(lab: Lab) -> None:
    copy = _copy_of(lab)
    shutil.rmtree(copy, ignore_errors=True)
    for room in _ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(lab.folder / "rest", copy, dirs_exist_ok=True)
    shutil.copyfile(lab.exercise, _file(lab))
    names = copy / "contract" / "domains" / "__init__.py"
    names.write_text(names.read_text().replace(_LINE, f'{_LINE}    "{NAME}",\n'))
    of_copy, python = shlex.quote(str(copy.absolute())), shlex.quote(sys.executable)
    _command(lab).write_text(f'#!/bin/sh\nPYTHONPATH={of_copy} exec {python} -P -m streamgauge.cli "$@"\n')
    _command(lab).chmod(0o755)


def _copy_of(lab: Lab) -> Path:
    return lab.exercise.with_name("project")


def _file(lab: Lab) -> Path:
    return _copy_of(lab) / "pipeline" / "domains" / f"{NAME}.py"


def _command(lab: Lab) -> Path:
    """The copy's `streamgauge`, which knows the domain."""
    return lab.exercise.with_name("streamgauge")
