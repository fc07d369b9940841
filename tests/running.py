"""Real brokers on free ports, commands run as a user runs them, and waiting by retrying."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pytest

from streamgauge.local.platform import Platform
from streamgauge.local.ports import free_ports
from streamgauge.local.registry import EmbeddedRegistry
from streamgauge.settings import Settings

RETRY_SECONDS = 60
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""For Java that lives for a few batches: what it spends on compiling well is a fifth of the cores' time, and never comes back."""
T = TypeVar("T")


def settings_on_free_ports(home: Path) -> Settings:
    """Settings of a platform of its own, which does not run. The cache of jars is the user's, or every test would fetch them."""
    kafka_port, _, dashboard_port, registry_port = free_ports(4)
    cache = Settings.from_environment().cache
    return Settings(
        home=home,
        kafka_port=kafka_port,
        dashboard_port=dashboard_port,
        registry_port=registry_port,
        cache=cache,
        driver_java_options=SHORT_LIVED,
    )


def running_platform(home: Path) -> Iterator[Settings]:
    """Settings of a broker of its own that runs, with every topic."""
    chosen = settings_on_free_ports(home)
    platform = Platform(chosen, with_registry=False)
    platform.start(detached=False)
    yield chosen
    platform.stop_guarded()


def running_registry(settings: Settings) -> Iterator[Settings]:
    """The same settings, while their registry runs."""
    registry = EmbeddedRegistry(settings)
    registry.start(detached=False)
    yield settings
    registry.stop()


def environment(settings: Settings, **more: str) -> dict[str, str]:
    """The environment in which a program has `settings`."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("STREAMGAUGE_", "KAFKA_", "SCHEMA_", "WIKIMEDIA_"))}
    return {**others, **settings.environment(), **more}


def streamgauge(*arguments: str, settings: Settings, timeout: float = 180, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command and returns what it printed; does not judge the exit code."""
    command = [sys.executable, "-m", "streamgauge.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment(settings, **variables))


def streamgauge_here(*arguments: str, settings: Settings, **variables: str) -> "subprocess.CompletedProcess[str]":
    """As `streamgauge`, in this process: Spark then starts in a JVM that is warm, which is most of what a short run takes."""
    from streamgauge.cli import main

    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with (
        patch.dict(os.environ, environment(settings, **variables), clear=True),
        patch.object(sys, "argv", ["streamgauge", *arguments]),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


def eventually(probe: Callable[[], T], what: str, seconds: float = RETRY_SECONDS) -> T:
    """The first truthy answer of `probe`; fails with `what` was waited for, and the last answer."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds} s for {what}; the last answer was {answer!r}")
        time.sleep(0.1)
    return answer
