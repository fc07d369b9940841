"""The Spark session, with all settings that queries share."""

import contextlib
import logging
import os
import pwd
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from contract.topics import MAX_RECORD_BYTES
from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.java.runtime import java_home, log_options
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.process.logs import rotate
from infrastructure.settings import Settings
from infrastructure.spark_master import LOOPBACK, is_local, path_with_own_python
from infrastructure.storage.temporary import temporary_folder
from pipeline.spark.cluster import check_executors, cluster_config, refuse_folders_of_one_machine
from pipeline.spark.errors import first_line
from pipeline.spark.jvm import start_jvm
from pipeline.spark.kafka_options import check_kafka_options

_LOGGING = Path(__file__).with_name("log4j2.properties")

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""spark-submit sets this variable when the JVM is already running."""

_BARE_LOCAL_FILES = {
    # Hadoop's local file system forks a `chmod` for each new file: three or more per micro-batch.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    # The default manager bypasses fs.file.impl. This one writes a temporary file and renames it, which is atomic on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    # Hadoop keeps a checksum of each local file already. Spark's own would double the files that a batch writes.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}

_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # A batch writes what it has changed, not all that it keeps.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
TIMER_STATE = _ROCKSDB | {
    # A later version of the code may add fields to the state's values.
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
}
"""The state store of transformWithState. Other queries keep the default, which is faster for small states."""
REAL_TIME_CONFIG = _ROCKSDB | {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # The batch that catches up would be followed by one that only deletes old state, as the next batch does anyway.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""The settings of queries in Spark's real-time mode."""

MOST_ROWS = 2**31 - 1
"""The largest limit of rows that Spark takes."""
_REAL_TIME_SLOTS = 128

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # The default suits tables with a million files: 50 tasks to read the log of each version.
    "spark.databricks.delta.snapshotPartitions": "2",
}

_SOCKET_FOLDER_BYTES = 60
"""The path of a socket has 103 bytes at most (macOS), and Spark's name for one has 42."""

# A corrupt length field makes the decoder allocate up to 2 GB, and the driver run out of memory.
_AVRO_LIMITS = " ".join(f"-Dorg.apache.avro.limits.{kind}.maxLength={MAX_RECORD_BYTES}" for kind in ("string", "bytes", "collectionItems"))
# Half of a short run's CPU time is Java's second compiler. It is to compile what runs ten times as often as by default.
_LATE_SECOND_COMPILER = " ".join(
    f"-XX:Tier4{name}Threshold={calls}"
    for name, calls in (("Invocation", 50_000), ("MinInvocation", 6_000), ("Compile", 150_000), ("BackEdge", 400_000))
)
# Avro's fast reader keeps each parsed schema as long as Java runs (AVRO-4253), and each task of a query parses its schemas anew.
# Spark's classes take 200 MB. With Java's default, 21 MB, a start takes four full collections.
_JAVA_OPTIONS = f"-Duser.timezone=UTC -Dorg.apache.avro.fastread=false -XX:MetaspaceSize=256m {_LATE_SECOND_COMPILER} {_AVRO_LIMITS}"


def spark_session(settings: Settings, *, in_real_time: bool = False) -> SparkSession:
    """Starts Spark on `settings.spark_master` with the locked jars; it logs to a file under settings.logs.

    A session that already exists in this process, or that spark-submit started, keeps its master, jars, memory and log, and only gets the
    settings that queries need. in_real_time: for queries in Spark's real-time mode.

    Raises StreamgaugeError when Spark's JVM does not start, and when a cluster is unusable: no master, no executor, or folders that are not
    shared. Raises OSError when LAKE_URI is a path that cannot be a folder.
    """
    if not settings.is_lake_remote:
        with contextlib.suppress(FileNotFoundError):  # the first table creates it
            os.scandir(str(settings.lake)).close()
    if _SUBMITTED in os.environ or SparkContext._active_spark_context is not None:
        return _existing_session(settings)
    _check_user()
    os.environ["JAVA_HOME"] = str(java_home(settings))
    for_master = cluster_config(settings)
    if is_local(settings.spark_master):
        # Spark's Python workers need this interpreter's packages; by default they use the first Python on the PATH.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYTHONSAFEPATH"] = "1"  # they import nothing from the folder that one stands in
    else:
        # The driver runs the workers' command, too, to check the state of Python processors.
        os.environ["PATH"] = path_with_own_python()
    log = settings.logs.absolute() / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    config = _query_config(settings) | _process_config(settings, log) | for_master
    if in_real_time:
        # By default as many as there are slots, each of which would be a task of a micro-batch.
        config["spark.default.parallelism"] = settings.shuffle_partitions
    try:
        start_jvm(config, settings)
        spark = _builder(config).master(_master(settings, in_real_time=in_real_time)).getOrCreate()
    except (PySparkRuntimeError, Py4JNetworkError, ConnectionError) as error:
        msg = f"Spark's JVM ended while it started (killed, or without the memory that STREAMGAUGE_DRIVER_MEMORY={settings.driver_memory} asks for: its own messages are above, or in {log}); start again"
        raise StreamgaugeError(msg) from error
    except Py4JJavaError as error:  # such as a full disk
        msg = (
            f"Spark did not start ({first_line(error)}); its log is {log}, and its temporary files are in {temporary_folder(settings.home)}"
        )
        raise StreamgaugeError(msg) from error
    _print_to(log.with_name("spark-stderr.log"), spark)
    return _checked(spark, settings)


def _check_user() -> None:
    """Hadoop asks the operating system for the user's name, and without one Spark's JVM ends."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError as error:
        msg = f"user {os.getuid()} has no name on this machine, and Spark needs one; add it to /etc/passwd, or run as a user that exists"
        raise StreamgaugeError(msg) from error


def _master(settings: Settings, *, in_real_time: bool) -> str:
    """In real-time mode, all tasks of all queries run at the same time, most of them waiting, and each needs a slot."""
    return f"local[{_REAL_TIME_SLOTS}]" if in_real_time and settings.spark_master == "local[*]" else settings.spark_master


def _print_to(file: Path, spark: SparkSession) -> None:
    """Redirects what Python workers print from the terminal to a file: that of transformWithState prints ten lines at each start of its query."""
    rotate(file)
    java = spark.sparkContext._jvm.java  # type: ignore[union-attr]
    java.lang.System.setErr(java.io.PrintStream(java.io.FileOutputStream(str(file), True), True))  # noqa: FBT003


def _existing_session(settings: Settings) -> SparkSession:
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
    return SparkSession.builder.appName("streamgauge").config(map=dict(config))


def _process_config(settings: Settings, log: Path) -> dict[str, str | int]:
    """Settings for starting the JVMs of the driver and the executors."""
    folder = temporary_folder(settings.home)
    if "," in str(folder):  # Spark would take the path for two folders
        folder = Path(tempfile.gettempdir())
    of_files = [*log_options(_LOGGING, log), f"-Djava.io.tmpdir={folder}"]
    paths = [path.absolute() for bundle in jars.spark_bundles(settings) for path in jars.fetch(bundle, settings)]
    return {
        # Executors download these jars from the driver.
        "spark.jars": ",".join(path.as_uri() for path in paths),
        "spark.driver.extraClassPath": jars.class_path(paths),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f"{shlex.join(of_files)} -XX:+UseParallelGC {_JAVA_OPTIONS} {settings.driver_java_options}".rstrip(),
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "pipeline.spark.python_daemon",
        **_socket_config(settings, folder),
        # Each query has about twenty pieces of generated code. The default keeps a hundred, so that ten queries would compile theirs in every batch.
        "spark.sql.codegen.cache.maxEntries": 1000,
        # The default grows with the memory to 64 MB, and each join and aggregation of each task takes a page.
        "spark.buffer.pageSize": "1m",
        **_ui_config(settings),
    }


def _socket_config(settings: Settings, folder: Path) -> dict[str, str]:
    """Unix domain sockets for Python: by default it gets each result through a new TCP port, and fails if another program connects first."""
    # On a cluster, the path of a container's temporary folder can be too long for a socket.
    places = (str(folder), tempfile.gettempdir()) if is_local(settings.spark_master) else ()
    for place in places:
        if len(os.fsencode(place)) <= _SOCKET_FOLDER_BYTES and _is_found_in_lower_case(place):
            return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": place}
    return {}


def _is_found_in_lower_case(place: str) -> bool:
    """Whether the file system finds the folder by its path in lower case, in which Spark tells Python where the socket for state is."""
    lower = Path(place.lower())
    return lower.exists() and lower.samefile(place)


def _ui_config(settings: Settings) -> dict[str, str | int]:
    """Spark's web UI, which has no authentication: off, or read-only and on loopback, which Spark takes from the environment alone."""
    if settings.spark_ui_port is None:
        # Even when the UI is off, Spark describes the plan of each batch, which costs least in this mode, and keeps what it would show: by
        # default of a thousand jobs, stages and plans each.
        limits = ("spark.sql.ui.retainedExecutions", "spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.ui.retainedTasks")
        return {"spark.ui.enabled": "false", "spark.sql.ui.explainMode": "simple", **dict.fromkeys(limits, 20)}
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    return {"spark.ui.enabled": "true", "spark.ui.port": settings.spark_ui_port, "spark.ui.killEnabled": "false"}


def ui_address(spark: SparkSession) -> str | None:
    """The address of the session's web UI, on the configured port, or one of the next if it is taken. None if the UI is off."""
    if (address := spark.sparkContext.uiWebUrl) is None:
        return None
    return f"http://{LOOPBACK}:{urlsplit(address).port}"


def _query_config(settings: Settings) -> dict[str, str | int]:
    """Settings that queries need on any master."""
    return {
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": settings.shuffle_partitions,
        # The number of tasks that list a Delta table's folder for VACUUM. The default of 10,000 is for clusters with an object store.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": settings.shuffle_partitions,
        "spark.sql.streaming.multipleWatermarkPolicy": "min",
        "spark.sql.streaming.stopTimeout": "10s",
        # In real-time mode, a kill before the first checkpoint leaves state without offsets, which Spark would take for another query's.
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
        # How long an idle query waits before it asks for new records again. With the default, 10 ms, ten of them cost a fifth of a core.
        "spark.sql.streaming.pollingDelay": "100ms",
        "spark.sql.warehouse.dir": str(settings.home.absolute() / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Written by default, not read: without it, a damaged page of a Parquet file gives wrong numbers.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        # By default each call that makes a column also tells the JVM its line of Python, which is half of the time to build a plan.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_BARE_LOCAL_FILES,
        **(_DELTA if HAS_DELTA else {}),
        **_lake_config(settings),
    }


def _lake_config(settings: Settings) -> dict[str, str | int]:
    """Settings for S3. Credentials come from the standard AWS locations, and without a region here, so does Amazon's."""
    if not settings.aws_endpoint_url:
        return {"spark.hadoop.fs.s3a.endpoint.region": settings.aws_region} if settings.aws_region else {}
    return {
        "spark.hadoop.fs.s3a.endpoint": settings.aws_endpoint_url,
        "spark.hadoop.fs.s3a.endpoint.region": settings.aws_region or "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


@contextlib.contextmanager
def session_config(spark: SparkSession, config: Mapping[str, str]) -> Iterator[None]:
    """Changes settings of the session for the block. A streaming query that starts in it keeps a copy of them."""
    before = {name: spark.conf.get(name, None) for name in config}
    for name, value in config.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            spark.conf.unset(name) if former is None else spark.conf.set(name, former)


def is_alive(spark: SparkSession) -> bool:
    """Whether Spark's JVM is running. py4j reports a lost connection by several errors, not all of them its own."""
    try:
        spark.sparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]
    except (Py4JError, ConnectionError):
        return False
    return True


@contextlib.contextmanager
def running_session(
    settings: Settings, is_end_wanted: Callable[[], bool] = lambda: False, *, in_real_time: bool = False
) -> Iterator[SparkSession]:
    """The session of spark_session. Stops it at the end, unless it existed before.

    If `is_end_wanted` returns true, the end of the JVM is not an error: a signal may have reached both processes. Otherwise raises
    StreamgaugeError when the JVM ends. Also raises the errors of spark_session.
    """
    is_shared = SparkContext._active_spark_context is not None
    spark = spark_session(settings, in_real_time=in_real_time)
    # py4j logs a traceback to the root logger when the connection is lost; nothing else uses Python's logging.
    logging.getLogger().addHandler(logging.NullHandler())
    # PySpark prints an error in a query as JSON with a Java traceback, besides raising it.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        check_kafka_options(spark, settings)
        yield spark
    except (Py4JError, ConnectionError) as error:
        if is_alive(spark):
            raise
        if not is_end_wanted():
            msg = "Spark's JVM has ended (killed, or out of memory: see spark.log, and STREAMGAUGE_DRIVER_MEMORY); start again, and the queries continue from their checkpoints"
            raise StreamgaugeError(msg) from error
    finally:
        if not is_shared:
            with contextlib.suppress(Py4JError, ConnectionError):
                spark.stop()
