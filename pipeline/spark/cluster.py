"""Cluster settings and checks: executors must reach the driver, and share its folders."""

import re
import shutil
import time
import uuid
from pathlib import Path

from pyspark.sql import SparkSession

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.spark_master import LOOPBACK, address_towards, is_local, is_managed
from pipeline.spark.errors import SparkFailure

EXECUTOR_SECONDS = 60
RETRY_SECONDS = 0.1
_TASK_FAILURE = re.compile(r"\(TID \d+\) \((\S+) executor \w+\): (.*)")


class FolderNotShared(StreamgaugeError):  # noqa: N818 - these name what was found
    """Workers do not read and write the same folder as this process."""

    def __init__(self, master: str, folder: Path, problem: str) -> None:
        super().__init__(
            f"the workers of {master} do not share {folder} with this machine: {problem}; mount the same folder under the same path on every "
            "worker, and check that the workers' user may write to it"
        )


class FoldersOfOneMachine(StreamgaugeError):  # noqa: N818
    """Folders of this machine are set, and tasks run on others."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            f"SPARK_MASTER={settings.spark_master} runs tasks on workers, which may not have the folders of "
            f"STREAMGAUGE_HOME={settings.home.absolute()} and LAKE_URI={settings.lake_uri} under the same path; share them (a network file "
            "system, a volume) and set STREAMGAUGE_SHARED_HOME=true, or use an object store for both (CHECKPOINT_URI, LAKE_URI), or "
            "SPARK_MASTER=local[*]"
        )


class NoExecutor(StreamgaugeError):  # noqa: N818
    """A cluster started no executor in time."""

    def __init__(self, settings: Settings) -> None:
        cores = settings.executor_cores or 1
        super().__init__(
            f"the cluster at {settings.spark_master} started no executor within {EXECUTOR_SECONDS} s; expected a worker with {cores} free "
            f"core{'s' * (cores > 1)} and {settings.executor_memory} of free memory: start one "
            f"(`streamgauge spark-worker {settings.spark_master}`), lower STREAMGAUGE_EXECUTOR_MEMORY, or limit the cores of other commands "
            "with STREAMGAUGE_MAX_CORES"
        )


def cluster_config(settings: Settings) -> dict[str, str]:
    """Spark settings for `settings.spark_master`: addresses and resource limits.

    Raises StreamgaugeError when a cluster cannot work with `settings`: no master answers, folders are not shared, or only this machine can
    reach Kafka.
    """
    if is_local(settings.spark_master):
        return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    refuse_folders_of_one_machine(settings)
    # On Kubernetes and YARN, the manager or its settings determine the driver's address.
    driver_address = None if is_managed(settings.spark_master) else address_towards(settings.spark_master)
    if driver_address != LOOPBACK and not settings.kafka_bootstrap_servers:
        msg = f"the workers of {settings.spark_master} connect to Kafka directly, and the embedded broker listens on {LOOPBACK} only; set KAFKA_BOOTSTRAP_SERVERS to a Kafka that they can reach"
        raise StreamgaugeError(msg)
    wanted = {
        "spark.driver.bindAddress": driver_address,
        "spark.driver.host": settings.driver_host or driver_address,
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.cores": settings.executor_cores,
        "spark.cores.max": settings.max_cores,
        # An executor's log grows in its worker's folder as long as the application runs.
        "spark.executor.syncLogLevel.enabled": "true",
        "spark.executor.logs.rolling.strategy": "size",
        "spark.executor.logs.rolling.maxSize": 10 * 1024 * 1024,
        "spark.executor.logs.rolling.maxRetainedFiles": 3,
    }
    return {name: str(value) for name, value in wanted.items() if value is not None}


def check_executors(spark: SparkSession, settings: Settings) -> None:
    """Waits for executors, and checks that each of them reads and writes the same folders as this process.

    Raises StreamgaugeError when no executor registers within EXECUTOR_SECONDS, or when one does not share the folders. Executors that
    register later are not checked.
    """
    _wait_for_executors(spark, settings)
    # This also applies to executors, which would otherwise log a dozen lines per task.
    spark.sparkContext.setLogLevel("WARN")
    for folder in (settings.checkpoints, settings.lake):
        if isinstance(folder, Path):
            check_shared(spark, folder.absolute())


def check_shared(spark: SparkSession, folder: Path) -> None:
    """Raises StreamgaugeError unless this process and the executors share `folder` and can write to it."""
    probe, tasks = folder / f".shared-{uuid.uuid4().hex}", spark.sparkContext.defaultParallelism
    inputs, outputs = probe / "inputs", probe / "outputs"
    try:
        inputs.mkdir(parents=True)
        for number in range(tasks):
            (inputs / str(number)).write_text(f"{number}\n")
        # One file per task and one task per core, so that every executor takes part.
        spark.read.text(str(inputs)).write.text(str(outputs))
        numbers = sorted(int(line) for path in outputs.glob("part-*") for line in path.read_text().splitlines())
        problem = "" if numbers == list(range(tasks)) else f"of {tasks} rows that they wrote, {len(numbers)} are there"
    except (*SparkFailure, OSError) as error:
        problem = _first_failure(str(error))
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if problem:
        raise FolderNotShared(str(spark.sparkContext.master), folder, problem)


def _wait_for_executors(spark: SparkSession, settings: Settings) -> None:
    deadline = time.monotonic() + EXECUTOR_SECONDS
    # The driver is included in the count.
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 2:  # noqa: PLR2004
        if time.monotonic() > deadline:
            raise NoExecutor(settings)
        time.sleep(RETRY_SECONDS)


def refuse_folders_of_one_machine(settings: Settings) -> None:
    """Raises StreamgaugeError unless the settings declare the folders as shared, or all of them are in an object store."""
    if not settings.shared_home and not (settings.checkpoint_uri and settings.is_lake_remote):
        raise FoldersOfOneMachine(settings)


def _first_failure(text: str) -> str:
    """The host and reason of the failed task in a job's error message."""
    failed = _TASK_FAILURE.search(text)
    return f"{failed[1]} says {failed[2]}" if failed else next(iter(text.splitlines()), "no reason given")
