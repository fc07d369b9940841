"""Runs all checks in parallel, each with a time limit."""

import threading
import time
from collections.abc import Callable
from functools import partial

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointName
from streamgauge.operations.doctor import checkpoints, kafka, machine, schemas
from streamgauge.operations.doctor.findings import Finding

LONGEST_SECONDS = 10
Check = Callable[[], list[Finding]]


def examine(settings: Settings, names_of_code: Callable[[], set[CheckpointName]]) -> list[Finding]:
    """All findings, in the order of the checks. names_of_code: returns the names of the checkpoints that the code would use."""
    checks: dict[str, Check] = {
        "python": machine.python,
        "java": partial(machine.java, settings),
        "memory": partial(machine.memory, settings),
        "disk": partial(machine.disk, settings),
        "ports": partial(machine.ports, settings),
        "jars": partial(machine.cached_jars, settings),
        "kafka": partial(kafka.broker, settings),
        "topics": partial(kafka.topics, settings),
        "schema registry": partial(schemas.registry, settings),
        "checkpoints": partial(checkpoints.checkpoints, settings, names_of_code),
    }
    return run(checks, LONGEST_SECONDS)


def run(checks: dict[str, Check], longest_seconds: float) -> list[Finding]:
    """The findings of the checks, in order. A check that exceeds `longest_seconds` is abandoned and reported as such."""
    found: dict[str, list[Finding]] = {}
    threads = [
        threading.Thread(target=_note, args=(name, check, found), name=f"check {name}", daemon=True) for name, check in checks.items()
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + longest_seconds
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    unfinished = f"not through after {longest_seconds:g} s"
    return [
        finding
        for name in checks
        for finding in found.get(name, [Finding(name, "warning", unfinished, "try again when the machine or the network is less busy")])
    ]


def _note(name: str, check: Check, found: dict[str, list[Finding]]) -> None:
    try:
        found[name] = check()
    except StreamgaugeError as error:
        found[name] = [Finding(name, "problem", str(error))]
    except Exception as error:
        found[name] = [Finding(name, "problem", f"could not be looked at: {type(error).__name__}: {error}")]
