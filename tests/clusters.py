"""A Standalone cluster on loopback: a master and two workers of one core each, in processes of their own."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from running import SHORT_LIVED, environment, eventually, free_ports

from infrastructure.settings import Settings
from streamgauge.platform.processes import GuardedProcess


@dataclass
class Cluster:
    """settings: those of a driver on this cluster. home: of master and workers. Workers are numbered as they were started."""

    settings: Settings
    home: Path
    web_port: int
    workers: list[GuardedProcess] = field(default_factory=list)
    master: GuardedProcess | None = None

    def start_master(self) -> None:
        """Starts the master, and waits until it answers."""
        port = self.settings.spark_master.rpartition(":")[2]
        self.master = self.start("master", "spark-master", "--port", port, "--web-port", str(self.web_port))
        eventually(lambda: self.state()["status"] == "ALIVE", "the master to answer")

    def kill_master(self) -> None:
        """kill -9 of the master, and its start."""
        self.master.popen.kill()
        eventually(lambda: not self.master.is_running, "the master to end")
        self.start_master()

    def start_worker(self) -> None:
        """Starts one more, and waits until the master knows it."""
        number = len(self.workers)
        self.workers.append(self.start(f"worker-{number}", "spark-worker", self.settings.spark_master, "--cores", "1", "--memory", "600m"))
        expected = sum(worker.is_running for worker in self.workers)
        eventually(lambda: self.state()["aliveworkers"] == expected, f"the master to know {expected} workers")

    def kill_worker(self, number: int) -> None:
        """kill -9 of the worker alone: its executor must find out by itself that the worker has gone."""
        worker = psutil.Process(self.workers[number].pid)
        executors = worker.children()
        worker.kill()
        eventually(lambda: not any(executor.is_running() for executor in executors), "the executors of the killed worker to end")

    def kill_executor(self, number: int) -> None:
        """kill -9 of the executor of a worker alone, as the kernel does when memory is short.

        A worker may still have the executor of an application that has ended, and zombies.
        """
        (application,) = self.state()["activeapps"]

        def is_its_executor(process: psutil.Process) -> bool:
            with suppress(psutil.NoSuchProcess):
                return application["id"] in process.cmdline()
            return False

        (executor,) = filter(is_its_executor, psutil.Process(self.workers[number].pid).children())
        executor.kill()

    def state(self):
        """What the master's web page says, as JSON; nothing while it does not answer, or answers each address with its first page."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/json/", timeout=5) as answer:
                return json.load(answer)
        except (OSError, json.JSONDecodeError):
            return {"status": "away", "aliveworkers": -1}

    def start(self, name: str, *arguments: str) -> GuardedProcess:
        """Starts a command of Streamgauge that ends with this process."""
        own = replace(self.settings, home=self.home)
        command = [sys.executable, "-m", "streamgauge.cli", *arguments]
        # A worker's executors have its environment.
        variables = environment(own, JDK_JAVA_OPTIONS=SHORT_LIVED)
        return GuardedProcess.start(command, log=own.logs / f"{name}.out", environment=variables, grace_seconds=2)


@contextmanager
def running_cluster(settings: Settings) -> Iterator[Cluster]:
    """The cluster, with the rest as `settings` say."""
    port, web_port = free_ports(2)
    settings = replace(
        settings,
        spark_master=f"spark://127.0.0.1:{port}",
        shared_home=True,
        executor_memory="512m",
        driver_memory="512m",
        shuffle_partitions=2,
    )
    made = Cluster(settings, settings.home, web_port)
    try:
        made.start_master()
        made.start_worker()
        made.start_worker()
        yield made
    finally:
        for process in (*made.workers, made.master):
            if process is not None:
                process.stop()
