"""The stack of docker-compose.yaml under a name and on ports of its own, so that one that runs is left alone."""

import itertools
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from plain import read_topic

from contract.topics import STREAMING_METRICS
from infrastructure.settings import Settings

ROOT = Path(__file__).parents[1]
PROJECT = "streamgauge-test"
UP_SECONDS, DOWN_SECONDS, COMMAND_SECONDS = 1800, 120, 1200
OUT_OF_MEMORY = 137
"""128 + 9: what the kernel ends for want of memory gets signal 9."""
_SAMPLES = 20
"""How many records of a batch stand for all of them: they have come evenly between its start and that of the batch before."""


class Delays(NamedTuple):
    """How long records waited until their batch was over, in seconds; and the records that were left then, at most."""

    p50: float
    p95: float
    worst: float
    most_lag: int


@dataclass(frozen=True)
class Stack:
    """kafka_port, dashboard_port: where this machine reaches them."""

    kafka_port: int
    dashboard_port: int
    registry_port: int
    web_port: int

    @property
    def settings(self) -> Settings:
        """Settings of a program on this machine that uses the stack's Kafka."""
        return Settings(kafka_bootstrap_servers=f"127.0.0.1:{self.kafka_port}")

    def compose(self, *arguments: str, seconds: float = COMMAND_SECONDS, **variables: str) -> "subprocess.CompletedProcess[str]":
        """`docker compose` with `arguments`; does not judge the exit code."""
        environment = {
            **os.environ,
            **variables,
            "COMPOSE_PROJECT_NAME": PROJECT,
            "COMPOSE_PROFILES": "simulated,audit",
            "STREAMGAUGE_KAFKA_PORT": str(self.kafka_port),
            "STREAMGAUGE_DASHBOARD_PORT": str(self.dashboard_port),
            "STREAMGAUGE_REGISTRY_PORT": str(self.registry_port),
            "STREAMGAUGE_SPARK_WEB_PORT": str(self.web_port),
        }
        command = ["docker", "compose", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT, env=environment)

    def app(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A command of Streamgauge in a container of its own, as a user runs it."""
        return self.compose("run", "--rm", "-T", "app", *arguments)

    def gateway(self) -> str:
        """The address by which containers reach this machine."""
        return _docker("network", "inspect", f"{PROJECT}_default", "--format", "{{(index .IPAM.Config 0).Gateway}}").strip()

    def kill(self, service: str, what: str = "") -> None:
        """kill -9 of the processes in the service's container whose command has `what`, by default of all: it then starts again."""
        kill = "kill -9 -1" if not what else f'for one in /proc/[0-9]*; do grep -q {what} $one/cmdline && kill -9 "${{one#/proc/}}"; done'
        self.compose("exec", "-T", service, "bash", "-c", kill, seconds=60)

    def services(self) -> dict[str, str]:
        """The state of each service that runs: "running (healthy)"."""
        listed = self.compose("ps", "--format", "json").stdout.splitlines()
        return {one["Service"]: f"{one['State']} ({one['Health']})" for one in map(json.loads, listed)}

    def log(self, service: str) -> str:
        """All that the service has printed."""
        return self.compose("logs", "--no-color", "--no-log-prefix", service).stdout

    def memory_mib(self) -> dict[str, int]:
        """What each container uses, without the page cache."""
        lines = _docker("stats", "--no-stream", "--format", "{{json .}}", *self.compose("ps", "--quiet").stdout.split()).splitlines()
        units = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024, "B": 0}
        found = {}
        for one in map(json.loads, lines):
            used = one["MemUsage"].partition(" /")[0]
            unit = next(name for name in units if used.endswith(name))
            found[one["Name"].removeprefix(f"{PROJECT}-")] = round(float(used.removesuffix(unit)) * units[unit])
        return found

    def batches(self) -> list[dict[str, Any]]:
        """The reports of all batches that had rows, oldest first."""
        reports = [orjson.loads(message.value() or b"{}") for message in read_topic(self.settings, STREAMING_METRICS.name)]
        return sorted((one for one in reports if one["event"] == "progress" and one["input_rows"]), key=lambda one: one["time"])


def ended_since(since: datetime) -> list[str]:
    """What ended in containers of the stack: "spark-worker: out of memory" for each process that the kernel ended, and containers that died."""
    now = datetime.now(UTC) + timedelta(seconds=1)
    window = ["--since", since.isoformat(), "--until", now.isoformat()]
    lines = _docker(
        "events", *window, "--filter", f"label=com.docker.compose.project={PROJECT}", "--filter", "event=oom", "--filter", "event=die",
        "--format", "{{json .}}",
    ).splitlines()  # fmt: skip
    events = [(one["status"], one["Actor"]["Attributes"]) for one in map(json.loads, lines)]
    return [
        f"{of['com.docker.compose.service']}: {'out of memory' if status == 'oom' else 'exit code ' + of['exitCode']}"
        for status, of in events
        if of.get("com.docker.compose.oneoff") != "True"
    ]


def delays(reports: Iterable[Mapping[str, Any]]) -> dict[str, Delays]:
    """By query, the delays of the records of the batches in `reports`, but for those of the first."""
    by_query: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for report in reports:
        by_query[report["query"]].append(report)
    found = {}
    for query, batches in by_query.items():
        seconds = []
        for before, batch in itertools.pairwise(batches):
            came, until, done = (
                datetime.fromisoformat(text) for text in (before["batch_started_at"], batch["batch_started_at"], batch["time"])
            )
            seconds += [(done - came - (until - came) * place / _SAMPLES).total_seconds() for place in range(_SAMPLES)]
        if seconds:
            seconds.sort()
            lag = max(sum(batch["source_lag"].values()) for batch in batches)
            found[query] = Delays(seconds[len(seconds) // 2], seconds[len(seconds) * 95 // 100], seconds[-1], lag)
    return found


def left_over() -> list[str]:
    """Containers, volumes and networks of the stack."""
    kinds = (["ps", "--all"], ["volume", "ls"], ["network", "ls"])
    return "".join(_docker(*kind, "--quiet", "--filter", f"label=com.docker.compose.project={PROJECT}") for kind in kinds).split()


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout
