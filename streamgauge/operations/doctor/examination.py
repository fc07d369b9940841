"""Runs all checks in parallel, each with a time limit."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from streamgauge.operations.doctor import machine, servers
from streamgauge.operations.doctor.findings import Finding

MAX_SECONDS = 10
Check = Callable[[], list[Finding]]


def examine(settings: Settings) -> list[Finding]:
    """All findings, in the order of the checks."""
    checks: dict[str, Check] = {
        "python": machine.python,
        "java": partial(machine.java, settings),
        "memory": partial(machine.memory, settings),
        "disk": partial(machine.disk, settings),
        "ports": partial(machine.ports, settings),
        "jars": partial(machine.cached_jars, settings),
        "kafka": partial(servers.broker, settings),
        "topics": partial(servers.topics, settings),
        "schema registry": partial(servers.registry, settings),
    }
    return run(checks, MAX_SECONDS)


def run(checks: Mapping[str, Check], longest_seconds: float) -> list[Finding]:
    """The findings of the checks, in order. A check that exceeds `longest_seconds` is abandoned and reported as such."""
    unfinished = f"not finished after {longest_seconds:g} s"
    results = {name: [Finding(name, "warning", unfinished, "try again when the machine or the network is less busy")] for name in checks}

    def note(name: str) -> None:
        try:
            results[name] = checks[name]()
        except StreamgaugeError as error:
            results[name] = [Finding(name, "problem", str(error))]
        except Exception as error:
            results[name] = [Finding(name, "problem", f"could not be examined: {type(error).__name__}: {error}")]

    # Daemons, so that a check that hangs does not keep the program from ending.
    threads = [threading.Thread(target=note, args=(name,), daemon=True) for name in checks]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + longest_seconds
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    return [finding for findings in results.values() for finding in findings]
