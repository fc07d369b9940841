"""The command lines of Spark's Standalone master and worker, on the same Java as the driver.

Spark's own scripts also work if JAVA_HOME names a Java 17 or 21. These command lines do not need JAVA_HOME, write nothing into Spark's
Python package, and make master and worker listen on the given address only.
"""

from collections.abc import Mapping
from pathlib import Path

import pyspark

from contract.java.runtime import java_home
from contract.settings import Settings
from contract.spark_master import path_with_own_python

SPARK_HOME = Path(pyspark.__file__).parent
RECOVERY_SECONDS = 10
"""How long a restarted master waits for the workers and applications that it knew before it schedules new ones."""
FINISHED_SECONDS = 3600
"""How long a worker keeps the jars and logs of a finished application."""
Daemon = tuple[list[str], dict[str, str]]
"""A command, and the variables to add to its environment."""


def master(settings: Settings, *, host: str, port: int, web_port: int) -> Daemon:
    """A master at spark://`host`:`port`. After a kill, it recovers its workers and applications from STREAMGAUGE_HOME."""
    options = {
        "spark.deploy.recoveryMode": "FILESYSTEM",
        "spark.deploy.recoveryDirectory": str(settings.home.absolute() / "spark-master"),
        "spark.deploy.recoveryTimeout": str(RECOVERY_SECONDS),
    }
    arguments = ["org.apache.spark.deploy.master.Master", "--host", host, "--port", str(port), "--webui-port", str(web_port)]
    return _daemon(settings, host, arguments, {"SPARK_MASTER_OPTS": _flags(options)})


def worker(settings: Settings, master_url: str, *, host: str, cores: int | None, memory: str | None, web_port: int) -> Daemon:
    """A worker at `host` for the master at `master_url`. By default, it offers all cores, and all memory except 1 GB."""
    options = {"spark.worker.cleanup.enabled": "true", "spark.worker.cleanup.appDataTtl": str(FINISHED_SECONDS)}
    limits = [*(["--cores", str(cores)] if cores else []), *(["--memory", memory] if memory else [])]
    place = ["--work-dir", str(settings.logs.absolute() / f"spark-worker-{host}")]
    arguments = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", str(web_port), *limits, *place, master_url]
    return _daemon(settings, host, arguments, {"SPARK_WORKER_OPTS": _flags(options)})


def _daemon(settings: Settings, host: str, arguments: list[str], options: dict[str, str]) -> Daemon:
    environment = {
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java_home(settings)),
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
        # Makes the web pages listen on the same address.
        "SPARK_LOCAL_IP": host,
        "PATH": path_with_own_python(),
    }
    return [str(SPARK_HOME / "bin" / "spark-class"), *arguments], environment | options


def _flags(options: Mapping[str, str]) -> str:
    return " ".join(f"-D{name}={value}" for name, value in options.items())
