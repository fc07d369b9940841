"""The Spark session: one place for every setting that all queries share."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from contract.errors import StreamgaugeError
from contract.java import jars
from contract.java.runtime import java_home
from contract.settings import Settings
from contract.spark_master import is_local
from contract.topics import LARGEST_RECORD_BYTES
from pipeline.spark.cluster import check_executors, cluster_config, refuse_folders_of_one_machine

_LOGGING = Path(__file__).with_name("log4j2.properties")

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""By this variable spark-submit tells a Python program that its JVM runs already."""

_BARE_LOCAL_FILES = {
    # Hadoop's own local file system forks a `chmod` for each file that it creates, three or more a micro-batch.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    # The default manager goes around fs.file.impl. This one writes a temporary file and renames it, which is atomic on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
}

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Its default is for tables of a million files: 50 tasks to read the log of each version.
    "spark.databricks.delta.snapshotPartitions": "2",
}

# A damaged length in front of a text would have the decoder reserve up to 2 GB for it, and the driver die of it.
_AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{kind}.maxLength={LARGEST_RECORD_BYTES}" for kind in ("string", "bytes", "collectionItems")
)
_JAVA_OPTIONS = f"-Duser.timezone=UTC -XX:+UseParallelGC {_AVRO_LIMITS}"


def spark_session(settings: Settings) -> SparkSession:
    """Starts Spark on `settings.spark_master` with the locked jars; the log goes to a file under settings.logs.

    A session that this process has already, or that spark-submit has started, keeps its master, jars, memory and log; only what queries need
    is added. Raises StreamgaugeError when Spark's JVM does not come up, and when a cluster cannot do the work: no master or no executor,
    folders that are not shared.
    """
    if _SUBMITTED in os.environ or SparkContext._active_spark_context is not None:
        return _present_session(settings)
    os.environ["JAVA_HOME"] = str(java_home(settings))
    for_master = cluster_config(settings)
    if is_local(settings.spark_master):
        # Where Spark runs Python itself: this one, which has what is needed, and not the first on the PATH.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    log = settings.logs.absolute() / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    config = _query_config(settings) | _process_config(settings, log) | for_master
    try:
        spark = _builder(config).master(settings.spark_master).getOrCreate()
    except (PySparkRuntimeError, Py4JNetworkError, ConnectionError) as error:
        msg = f"Spark's JVM ended while it started (killed, or without the memory that STREAMGAUGE_DRIVER_MEMORY={settings.driver_memory} asks for: what it has said itself stands above, or in {log}); start again"
        raise StreamgaugeError(msg) from error
    return _checked(spark, settings)


def _present_session(settings: Settings) -> SparkSession:
    spark = _builder(_query_config(settings)).getOrCreate()
    time_zone = spark.sparkContext._jvm.java.util.TimeZone  # type: ignore[union-attr]
    time_zone.setDefault(time_zone.getTimeZone("UTC"))
    return _checked(spark, replace(settings, spark_master=str(spark.sparkContext.master)))


def _checked(spark: SparkSession, settings: Settings) -> SparkSession:
    if not is_local(settings.spark_master):
        try:
            refuse_folders_of_one_machine(settings)
            check_executors(spark, settings)
        except BaseException:
            spark.stop()
            raise
    return spark


def _builder(config: Mapping[str, str | int]) -> SparkSession.Builder:
    builder = SparkSession.builder.appName("streamgauge")
    for name, value in config.items():
        builder = builder.config(name, value)
    return builder


def _process_config(settings: Settings, log: Path) -> dict[str, str | int]:
    """What the driver's JVM, and executors, are started with."""
    paths = [str(path.absolute()) for bundle in jars.spark_bundles(settings) for path in jars.fetch(bundle, settings)]
    return {
        # Executors fetch these from the driver.
        "spark.jars": ",".join(paths),
        "spark.driver.extraClassPath": ":".join(paths),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING} -Dstreamgauge.log={log} {_JAVA_OPTIONS} {settings.driver_java_options}".rstrip(),
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _query_config(settings: Settings) -> dict[str, str | int]:
    """What queries need, wherever Spark runs."""
    return {
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": settings.shuffle_partitions,
        # So many tasks list a Delta table's folder for VACUUM; the default of 10,000 is for a cluster and its object store.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": settings.shuffle_partitions,
        "spark.sql.streaming.multipleWatermarkPolicy": "min",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.warehouse.dir": str(settings.home.absolute() / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **_BARE_LOCAL_FILES,
        **_DELTA,
        **_lake_config(settings),
    }


def _lake_config(settings: Settings) -> dict[str, str | int]:
    """What Spark is told of an S3 that is not Amazon's; credentials are found by both where Amazon's own programs look for them."""
    if not settings.aws_endpoint_url:
        return {}
    return {
        "spark.hadoop.fs.s3a.endpoint": settings.aws_endpoint_url,
        "spark.hadoop.fs.s3a.endpoint.region": settings.aws_region or "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def is_alive(spark: SparkSession) -> bool:
    """Whether Spark's JVM still runs: py4j tells in several ways, not all of them its own, that a call has not reached one."""
    try:
        spark.sparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]
    except (Py4JError, ConnectionError):
        return False
    return True


@contextlib.contextmanager
def running_session(settings: Settings, is_end_wanted: Callable[[], bool] = lambda: False) -> Iterator[SparkSession]:
    """The session of spark_session, stopped in the end; one that this process had before is used and left running.

    The end of its JVM is no error when `is_end_wanted`: a signal may have reached both. Raises StreamgaugeError when the JVM ends for another
    reason, and what spark_session raises.
    """
    is_shared = SparkContext._active_spark_context is not None
    spark = spark_session(settings)
    # py4j reports a lost connection as tracebacks on the root logger; nothing else here logs through Python.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        yield spark
    except (Py4JError, ConnectionError) as error:
        if is_alive(spark):
            raise
        if not is_end_wanted():
            msg = "Spark's JVM has ended (killed, or out of memory: see spark.log, and STREAMGAUGE_DRIVER_MEMORY); start again, the queries go on from their checkpoints"
            raise StreamgaugeError(msg) from error
    finally:
        if not is_shared:
            with contextlib.suppress(Py4JError, ConnectionError):
                spark.stop()
