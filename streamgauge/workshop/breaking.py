"""Breaks the demo by one of FAULTS at a time, remembers how, and undoes it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import psutil

from contract.query_status import read_statuses
from infrastructure.errors import StreamgaugeError
from infrastructure.output.terminal import warn
from infrastructure.rows import moment
from infrastructure.settings import Settings
from infrastructure.storage.paths import write_whole
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.workshop import grader
from streamgauge.workshop.faults import FAULTS, Fault


@dataclass(frozen=True)
class Played:
    """A fault that is not repaired yet. at: when it was played, UTC. before: what its action needs to undo it."""

    name: str
    at: datetime
    before: Any

    @property
    def fault(self) -> Fault:
        return FAULTS[self.name]


def drawn(seed: int | None) -> str:
    """The name of a fault: the same one for the same seed."""
    return random.Random(seed).choice(list(FAULTS))  # noqa: S311 - a game


def play(name: str, settings: Settings) -> None:
    """Breaks the system, and remembers how. Raises StreamgaugeError when that is not possible, or the last fault has not been repaired.

    It never breaks a Kafka of the user's own, nor that of another STREAMGAUGE_HOME, where `diagnose` and `undo` would not find the fault.
    """
    if settings.kafka_bootstrap_servers:
        msg = f"only the demo's own Kafka is broken on purpose, and KAFKA_BOOTSTRAP_SERVERS is {settings.kafka_bootstrap_servers}; unset it"
        raise StreamgaugeError(msg)
    if EmbeddedKafka(settings).process is None:
        msg = f"no demo runs with STREAMGAUGE_HOME={settings.home}; start `streamgauge demo`, or set the STREAMGAUGE_HOME of the one that runs"
        raise StreamgaugeError(msg)
    if last := played(settings):
        msg = f"the fault of {last.at:%H:%M} UTC is not repaired yet; `streamgauge workshop diagnose` continues with it, and `streamgauge break --undo` undoes it"
        raise StreamgaugeError(msg)
    with _processes_may_end():
        before = FAULTS[name].action.play(settings)
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, orjson.dumps([name, datetime.now(UTC), before]))


def played(settings: Settings) -> Played | None:
    """The fault that was played here and not repaired since. Raises StreamgaugeError if the file that names it is damaged, or of another version."""
    file = _file(settings)
    if not file.exists():
        return None
    try:
        name, at, before = orjson.loads(file.read_bytes())
        last = Played(name, moment(at), before)
        _ = last.fault
    except (ValueError, TypeError, KeyError) as error:
        msg = f"{file} names no fault of this version; delete it: what was broken is to be repaired by hand"
        raise StreamgaugeError(msg) from error
    return last


def undo(settings: Settings) -> Played:
    """Undoes the last fault, as far as it has not been repaired since, and forgets it. Raises StreamgaugeError when nothing is broken, or that is not possible."""
    last = played(settings)
    if last is None:
        raise nothing_is_broken()
    with _processes_may_end():
        last.fault.action.undo(settings, last.before)
    forget(settings)
    return last


def forget(settings: Settings) -> None:
    """The fault is repaired."""
    _file(settings).unlink(missing_ok=True)


def nothing_is_broken() -> StreamgaugeError:
    return StreamgaugeError("nothing is broken; `streamgauge workshop break` breaks something")


def remains(name: str, settings: Settings) -> Iterator[str]:
    """What is still to be repaired, in lines. Raises StreamgaugeError when Kafka cannot be reached."""
    from audit.commands import verdicts_of

    fault = FAULTS[name]
    with _processes_may_end():
        left = fault.action.left(settings)
    if left:
        yield left
        return
    statuses = [status for status in read_statuses(settings, warn) if status.query in fault.queries]
    if not statuses:
        yield "no query has run"
        return
    yield from (f"query {status.query} is {status.state}" for status in statuses if status.is_trouble)
    for verdict in verdicts_of([status.query for status in statuses], settings):
        if verdict.verdict != "right":
            yield f"verify: {verdict.query} is {verdict.verdict}, {verdict.rows.wrong} rows are wrong"


@contextmanager
def _processes_may_end() -> Iterator[None]:
    """Raises StreamgaugeError in place of an error about a process, which may have ended since it was found."""
    try:
        yield
    except psutil.Error as error:
        msg = f"{error}; try again"
        raise StreamgaugeError(msg) from error


def _file(settings: Settings) -> Path:
    return grader.home(settings) / "fault.json"
