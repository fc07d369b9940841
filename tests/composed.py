"""The stack of docker-compose.yaml under a name and on ports of its own, so that one that runs is left alone."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = "streamgauge-test"
UP_SECONDS, DOWN_SECONDS, COMMAND_SECONDS = 1800, 120, 1200


@dataclass(frozen=True)
class Stack:
    """kafka_port, dashboard_port: where this machine reaches them."""

    kafka_port: int
    dashboard_port: int
    registry_port: int
    web_port: int

    def compose(self, *arguments: str, seconds: float = COMMAND_SECONDS, **variables: str) -> "subprocess.CompletedProcess[str]":
        """`docker compose` with `arguments`; does not judge the exit code."""
        environment = {
            **os.environ,
            **variables,
            "COMPOSE_PROJECT_NAME": PROJECT,
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
        query = ["docker", "network", "inspect", f"{PROJECT}_default", "--format", "{{(index .IPAM.Config 0).Gateway}}"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()

    def kill(self, service: str, number: int = 1) -> None:
        """kill -9 of all that runs in a container of the service; its restart policy then starts it again."""
        self.compose("exec", "-T", "--index", str(number), service, "sh", "-c", "kill -9 -1", seconds=60)


def left_over() -> list[str]:
    """Containers, volumes and networks of the stack."""
    kinds = (["ps", "--all"], ["volume", "ls"], ["network", "ls"])
    label = f"label=com.docker.compose.project={PROJECT}"
    found = [
        subprocess.run(["docker", *kind, "--quiet", "--filter", label], capture_output=True, text=True, check=True).stdout for kind in kinds
    ]
    return "".join(found).split()
