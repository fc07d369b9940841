"""The command lines of Spark's Standalone master and worker and of an executor on Kubernetes, on the same Java as the driver.

Spark's own scripts also work if JAVA_HOME names a Java 17 or 21. These command lines do not need JAVA_HOME, write nothing into Spark's
Python package, and make master and worker listen on the given address only.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pyspark

from infrastructure.errors import StreamgaugeError
from infrastructure.java.runtime import java_home
from infrastructure.settings import Settings
from infrastructure.spark_master import path_with_own_python

SPARK_HOME = Path(pyspark.__file__).parent
_LOGGING = Path(__file__).with_name("spark-daemon-log4j2.properties")
RECOVERY_SECONDS = 10
"""How long a restarted master waits for the workers and applications that it knew before it schedules new ones."""
FINISHED_SECONDS = 3600
"""How long a worker keeps the jars and logs of a finished application."""
JAVA_OPTION = "SPARK_JAVA_OPT_"
EXECUTOR_OPTIONS = {
    "memory": "SPARK_EXECUTOR_MEMORY",
    "driver-url": "SPARK_DRIVER_URL",
    "executor-id": "SPARK_EXECUTOR_ID",
    "cores": "SPARK_EXECUTOR_CORES",
    "app-id": "SPARK_APPLICATION_ID",
    "hostname": "SPARK_EXECUTOR_POD_IP",
    "resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "podName": "SPARK_EXECUTOR_POD_NAME",
}
"""The options of an executor, each with the variable in which Spark's driver passes it."""
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


def executor(settings: Settings, env: Mapping[str, str]) -> Daemon:
    """An executor in a pod. env: the variables in which the driver passes its options, as to Spark's own image.

    Raises StreamgaugeError when one is missing.
    """
    if missing := [name for name in EXECUTOR_OPTIONS.values() if name not in env]:
        msg = f"an executor needs {', '.join(missing)}; only a Spark driver on Kubernetes starts it, and sets them"
        raise StreamgaugeError(msg)
    java_options = sorted((name for name in env if name.startswith(JAVA_OPTION)), key=lambda name: int(name.removeprefix(JAVA_OPTION)))
    options = {option: env[name] for option, name in EXECUTOR_OPTIONS.items()}
    memory = options.pop("memory")
    command = [
        str(java_home(settings) / "bin" / "java"),
        *(env[name] for name in java_options),
        *(f"-Xms{memory}", f"-Xmx{memory}"),
        *("-cp", ":".join(filter(None, [env.get("SPARK_CLASSPATH"), str(SPARK_HOME / "jars" / "*")]))),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *(part for option, value in options.items() for part in (f"--{option}", value)),
    ]
    return command, {"SPARK_HOME": str(SPARK_HOME), "PATH": path_with_own_python()}


def _daemon(settings: Settings, host: str, arguments: list[str], options: dict[str, str]) -> Daemon:
    environment = {
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java_home(settings)),
        "SPARK_DAEMON_MEMORY": "96m",
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={shlex.quote(_LOGGING.as_uri())}",
        # Makes the web pages listen on the same address.
        "SPARK_LOCAL_IP": host,
        "PATH": path_with_own_python(),
    }
    return [str(SPARK_HOME / "bin" / "spark-class"), *arguments], environment | options


def _flags(options: Mapping[str, str]) -> str:
    return shlex.join(f"-D{name}={value}" for name, value in options.items())
