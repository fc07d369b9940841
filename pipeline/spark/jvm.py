"""Starts Spark's JVM with an archive of the classes that it loads.

PySpark starts `spark-submit`, a JVM that assembles the command of another. Without configuration files that command is always the same, and
is run here without it: with each jar once on the class path, as an archive requires.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from infrastructure.errors import StreamgaugeError
from infrastructure.java import class_data, jars
from infrastructure.java.runtime import java_home
from infrastructure.settings import Settings
from infrastructure.spark_master import LOOPBACK, is_local
from infrastructure.storage.temporary import temporary_folder

SPARK_HOME = Path(pyspark.__path__[0])
CONFIGURATION = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS")
"""Variables that only spark-submit understands, as it does the folder `conf` of Spark."""
OPENED = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent", "util.concurrent.atomic"),
    *("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
OPTIONS = (
    *(f"--add-opens=java.base/{name if name.startswith(('jdk.', 'sun.')) else f'java.{name}'}=ALL-UNNAMED" for name in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
"""What Spark's launcher adds to the user's options, without the module jdk.incubator.vector and the options for Java 23, which not every Java has."""
LEAST_BYTES = 1_000_000
"""With less free space, Spark's JVM fails to write the file with its address, and does not end."""


def start_jvm(config: Mapping[str, str | int], settings: Settings) -> None:
    """Starts the driver's JVM for PySpark. Leaves it to PySpark if there are configuration files, or a JVM already.

    Raises PySparkRuntimeError if the JVM ends while it starts, and StreamgaugeError if SPARK_HOME names another version, or the disk is full.
    """
    home = os.environ.get("SPARK_HOME")
    if home and not any(Path(home).glob(f"jars/spark-core_*-{pyspark.__version__}.jar")):
        msg = f"SPARK_HOME={home} has no Spark {pyspark.__version__}, which Streamgauge needs; unset it, and Streamgauge uses its own"
        raise StreamgaugeError(msg)
    is_configured = (SPARK_HOME / "conf").exists() or any(os.environ.get(name) for name in CONFIGURATION)
    if is_configured or SparkContext._gateway is not None:
        return
    with tempfile.TemporaryDirectory(dir=temporary_folder(settings.home)) as folder:
        connection = Path(folder) / "connection"
        variables = {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONNECT_MODE": "0",
            "PYTHONHASHSEED": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        }
        if is_local(settings.spark_master):  # otherwise Spark looks up this machine's own name, and ends where no name server knows it
            variables |= {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_LOCAL_HOSTNAME": LOOPBACK}
        # The JVM ends when its standard input does. Ctrl-C is for Python, which stops the queries first.
        jvm = subprocess.Popen(
            command(config, settings), stdin=subprocess.PIPE, env=os.environ | variables, preexec_fn=_ignore_interrupts  # noqa: PLW1509 - as PySpark does
        )  # fmt: skip
        _wait_for_connection(jvm, connection, settings)
        with connection.open("rb") as file:
            port, secret = read_int(file), UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
    address = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(address)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in address:
            del os.environ[name]
    gateway.proc = jvm
    SparkContext._ensure_initialized(gateway=gateway)


def _wait_for_connection(jvm: "subprocess.Popen[bytes]", connection: Path, settings: Settings) -> None:
    """Waits until the JVM has written the file with its address. Raises as `start_jvm`."""
    while not connection.exists():
        if jvm.poll() is not None:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        if shutil.disk_usage(connection.parent).free < LEAST_BYTES:
            jvm.kill()
            jvm.wait()
            msg = f"no space is left under {settings.home.absolute()}, and Spark does not start; free some space"
            raise StreamgaugeError(msg)
        time.sleep(0.05)


def command(config: Mapping[str, str | int], settings: Settings) -> list[str]:
    """The command that Spark's launcher assembles from `config`, with the archive if there is one."""
    program, fixed = java(settings), fixed_class_path(settings)
    configured = map(Path, str(config["spark.driver.extraClassPath"]).split(":"))
    return [
        str(program),
        *class_data.options(class_data.archive_for(program, fixed, settings.cache)),
        *("-cp", jars.class_path(list(dict.fromkeys([*fixed, *configured])))),
        f"-Xmx{config['spark.driver.memory']}",
        *shlex.split(str(config["spark.driver.extraJavaOptions"])),
        *OPTIONS,
        "org.apache.spark.deploy.SparkSubmit",
        *(part for name, value in config.items() for part in ("--conf", f"{name}={value}")),
        "pyspark-shell",
    ]


def fixed_class_path(settings: Settings) -> list[Path]:
    """The jars with which the class path of every session begins: an archive of classes fits each class path that begins with its jars.

    For each job, Spark reads the class files of its closures again, and searches for them jar by jar. So its own jars come first.
    """
    spark_jars = sorted((SPARK_HOME / "jars").glob("spark-*.jar"))
    locked = [path for bundle in jars.SPARK for path in jars.paths(bundle, settings)]
    return list(dict.fromkeys([*spark_jars, *locked, *sorted((SPARK_HOME / "jars").glob("*.jar"))]))


def java(settings: Settings) -> Path:
    """The Java that runs Spark."""
    return java_home(settings) / "bin" / "java"


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
