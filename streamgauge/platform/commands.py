"""The commands up, fetch, packages, spark-master, spark-worker and executor."""

import os
from typing import Annotated

import typer

from infrastructure.output.terminal import err, out
from infrastructure.settings import Settings
from infrastructure.spark_master import LOOPBACK, address_towards

WebPort = Annotated[int, typer.Option(min=0, max=65535, help="port of the web page; 0: any free port")]


def up() -> None:
    """Start the embedded Kafka and schema registry in the background. Missing topics are created, also in your own Kafka."""
    from streamgauge.platform.platform import Platform

    platform = Platform(Settings.from_environment(), say=err.print)
    platform.launch(detached=True)
    platform.wait_until_ready(out.print, with_registry=True)


def fetch(
    download: Annotated[bool, typer.Option(help="Download the jars, or only save the classes.")] = True,  # noqa: FBT002 - an option
) -> None:
    """Download the jars, so that later starts need no network. Also saves the classes that Spark and the servers load, so that they start faster."""
    from infrastructure.java import jars
    from infrastructure.java.runtime import java_home
    from pipeline.spark.classes import save_classes
    from streamgauge.platform.platform import save_server_classes

    settings = Settings.from_environment()
    java_home(settings)
    if download:
        for bundle in (*jars.SPARK, "s3", "kafka"):
            jars.fetch(bundle, settings)
        jars.unpacked("registry", settings)
        out.print(f"all that jars.lock names is in {settings.cache}")
    save_classes(settings)
    save_server_classes(settings)


def packages() -> None:
    """Print the Maven coordinates for spark-submit's --packages."""
    from infrastructure.java import jars

    settings = Settings.from_environment()
    artifacts = [artifact for bundle in jars.spark_bundles(settings) for artifact in jars.locked(bundle)]
    out.print(",".join(str(artifact.coordinate) for artifact in artifacts))


def spark_master(
    host: Annotated[str, typer.Option(help="the name or address that the master listens on, and by which others reach it")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=1, max=65535, help="the port in spark://host:port")] = 7077,
    web_port: WebPort = 0,
) -> None:
    """Run a Spark Standalone master in the foreground. Anyone who reaches its port can run programs: use a closed network."""
    from streamgauge.platform import spark_daemons

    _become(*spark_daemons.master(Settings.from_environment(), host=host, port=port, web_port=web_port))


def spark_worker(
    master: Annotated[str, typer.Argument(help="the address of the master, such as spark://host:7077")],
    host: Annotated[
        str | None,
        typer.Option(help="the name or address by which others reach the worker; unset: the local address that reaches the master"),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="how many cores to offer; unset: all", show_default=False)] = None,
    memory: Annotated[
        str | None, typer.Option(help="how much memory to offer, such as 2g; unset: all but 1 GB", show_default=False)
    ] = None,
    web_port: WebPort = 0,
) -> None:
    """Run a Spark Standalone worker in the foreground. It needs this installation of Streamgauge and the driver's folders."""
    from streamgauge.platform import spark_daemons

    settings, local_address = Settings.from_environment(), address_towards(master)
    _become(*spark_daemons.worker(settings, master, host=host or local_address, cores=cores, memory=memory, web_port=web_port))


def executor() -> None:
    """Run a Spark executor in a pod. Spark's driver on Kubernetes starts it, with the image's command and this word."""
    from streamgauge.platform import spark_daemons

    _become(*spark_daemons.executor(Settings.from_environment(), os.environ))


def _become(command: list[str], environment: dict[str, str]) -> None:
    """Replaces this process with Spark, which then receives its signals."""
    os.execve(command[0], command, {**os.environ, **environment})  # noqa: S606
