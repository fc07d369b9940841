"""Real brokers on free ports, commands run as a user runs them, and waiting by retrying."""

import functools
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

import psutil
import pytest
from object_store import CREDENTIALS, ObjectStore

from contract.create_topics import create_topics
from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.process.ports import free_ports
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings
from infrastructure.settings.sources import CONFIG
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.registry import EmbeddedRegistry
from streamgauge.platform.server import EmbeddedServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETRY_SECONDS = 600
"""How long a state is waited for: far longer than it takes on a slow and busy machine, so that only what never comes runs into it."""
PATIENCE_MS = RETRY_SECONDS * 1000
"""RETRY_SECONDS, for a browser."""
OF_THIS_MACHINE = ("STREAMGAUGE_CACHE", "STREAMGAUGE_JAVA_HOME", "STREAMGAUGE_MAVEN_URL")
"""The only settings that tests, chaos and benchmarks take from their environment. Others may name somebody's production."""
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m"
"""For Java that lives for a few batches: compiling well takes a fifth of the cores' time, and does not pay.

With the first compiler alone, Java reserves 48 MB for compiled code. All queries in one JVM fill them, and Java says so on standard output.
"""
PROCESS_SECONDS = 1000
"""How long a process may take that is waited for: as with RETRY_SECONDS, far longer than it does."""
SOON_AWAY = {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "2", "fs.s3a.retry.interval": "100ms"}
"""Hadoop tries a request to an object store again for two minutes. That ours is away need not be waited for so long."""
FEW_ROWS = {
    # What is not compiled runs at once: of a plan that meets a few rows, most of the time would go into compiling it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Settings of the session that tests share, and labs. A pipeline that a test starts as a process runs with the product's own."""
SPARK_COMMANDS = {"derive", "ingest", "maintain", "query", "run", "state"}
T = TypeVar("T")
OBJECT_STORE = ObjectStore(free_ports(1)[0])
"""The worker's object store. Its address is chosen before it starts, for Spark takes it at its own start."""


def alive(processes: Iterable[psutil.Process], name: str | None = None) -> list[psutil.Process]:
    """Those that have not ended, of this name if there is one. Each may end while it is asked."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE and name in {None, process.name()}:
                found.append(process)
    return found


def below(pid: int, name: str | None = None) -> list[psutil.Process]:
    """What descends from a process and is alive."""
    return alive(psutil.Process(pid).children(recursive=True), name)


def forget_surroundings() -> None:
    """Removes every setting from this process's environment, except those OF_THIS_MACHINE, and leaves it no file."""
    for variable in Settings().environment():
        if variable not in OF_THIS_MACHINE:
            os.environ.pop(variable, None)
    os.environ[CONFIG] = os.devnull


def settings_on_free_ports(home: Path) -> Settings:
    """Settings of a platform of its own, which does not run. Its queries run in micro-batches, unless a test is about Spark's real-time mode."""
    kafka_port, dashboard_port, registry_port = free_ports(3)
    return replace(
        Settings.from_environment({variable: os.environ.get(variable, "") for variable in OF_THIS_MACHINE}),
        home=home,
        kafka_port=kafka_port,
        dashboard_port=dashboard_port,
        registry_port=registry_port,
        real_time="off",
        driver_java_options=SHORT_LIVED,
    )


def few_rows(settings: Settings, **config: str) -> Settings:
    """The same settings for a process whose Spark session, too, is for FEW_ROWS. config: more of its configuration.

    It is passed as Java options: with a configuration file, Spark starts a second JVM, and neither uses the class archive.
    """
    options = " ".join([settings.driver_java_options, *(f"-D{name}={value}" for name, value in {**FEW_ROWS, **config}.items())])
    return replace(settings, driver_java_options=options, shuffle_partitions=1)


def running_platform(home: Path) -> Iterator[Settings]:
    """Settings of a broker of its own that runs, with every topic."""
    chosen = settings_on_free_ports(home)
    broker = running_broker(chosen)
    yield chosen
    broker.stop()


def start_server(server: EmbeddedServer, *, detached: bool = False) -> bool:
    """Starts an embedded server and waits until it is ready. False if it was already running."""
    was_started = server.launch(detached=detached)
    server.wait_until_ready()
    return was_started


def with_kafka(settings: Settings, process: psutil.Process | None) -> Settings:
    """`settings`, whose home takes `process` for its Kafka. Do not stop it there."""
    assert process
    EmbeddedKafka(settings).pid_file.write(process.pid, process.cmdline()[-1])
    return settings


def running_broker(settings: Settings) -> EmbeddedKafka:
    """The broker of `settings`, which runs from now on, with every topic."""
    broker = EmbeddedKafka(settings)
    start_server(broker)
    create_topics(settings.kafka)
    return broker


def running_registry(settings: Settings) -> Iterator[Settings]:
    """The same settings, while their registry runs."""
    registry = EmbeddedRegistry(settings)
    start_server(registry)
    yield settings
    registry.stop()


def environment(settings: Settings, **more: str) -> dict[str, str]:
    """The environment in which a program has `settings`."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("STREAMGAUGE_", "KAFKA_", "SCHEMA_", "WIKIMEDIA_"))}
    return {**others, **settings.environment(), **more}


def streamgauge(*arguments: str, settings: Settings, without_spark: bool = False, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command in this process, on the worker's Spark session; returns what it printed, and does not judge the exit code."""
    from streamgauge.cli import main

    if arguments[0] in SPARK_COMMANDS and not without_spark:
        shared_spark()
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with (
        patch.dict(os.environ, environment(settings, **variables), clear=True),
        patch.object(sys, "argv", ["streamgauge", *arguments]),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


def succeed(*arguments: str, settings: Settings, **variables: str) -> "subprocess.CompletedProcess[str]":
    """As `streamgauge`; fails unless the exit code is 0."""
    done = streamgauge(*arguments, settings=settings, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def done(settings: Settings, place: Mapping[str, str], *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end, which is `code`. place: variables that say where the lake and checkpoints are."""
    ran = streamgauge(*arguments, settings=settings, **place)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


def verdicts(settings: Settings, place: Mapping[str, str], *queries: str) -> list[str]:
    """What `streamgauge verify` says of each query, in their order."""
    return [one["verdict"] for one in json.loads(done(settings, place, "verify", *queries, "--format", "json").stdout)]


def verify(*queries: str, settings: Settings, **variables: str) -> dict[str, Any]:
    """What `streamgauge verify` finds of each query, by its name, whether it is right or wrong."""
    done = streamgauge("verify", *queries, "--format", "json", settings=settings, **variables)
    assert done.stdout, done.stderr
    return {outcome["query"]: outcome for outcome in json.loads(done.stdout)}


def streamgauge_process(
    *arguments: str, settings: Settings, timeout: float = PROCESS_SECONDS, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """As `streamgauge`, in a process of its own, as a user runs it; a query then pays for a Spark start."""
    command = [sys.executable, "-m", "streamgauge.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment(settings, **variables))


@contextmanager
def running_queries(*names: str, settings: Settings) -> Iterator[list[str]]:
    """`streamgauge run` of these queries in a thread, on the worker's Spark session, until the end of the block; gives the lines that it says.

    Fails if it ends before. Its own error, such as that a query was given up, is raised at the end of the block.
    """
    from pipeline.catalog import chosen
    from pipeline.running.runner import Runner

    said: list[str] = []
    stop = StopRequest()
    runner = Runner(shared_spark(), settings, said.append, stop)
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(runner.run, chosen(names, settings))
        try:
            yield said
            assert not run.done(), f"the run ended by itself ({run.exception()}): {said}"
        finally:
            stop.set()
        run.result()


@functools.cache
def shared_spark() -> "SparkSession":
    """The Spark session of this process, with everything a test may need.

    It has slots for real-time mode, which the Spark of Delta does not have, the jars for an object store, and its address and credentials.
    """
    from pipeline.spark.session import spark_session

    chosen = Settings(
        home=Path(tempfile.mkdtemp(prefix="streamgauge-spark-")),
        cache=Settings.from_environment().cache,
        lake_uri="s3a://bucket/tables",
        aws_endpoint_url=OBJECT_STORE.address,
        driver_java_options=SHORT_LIVED,
        driver_memory="2g",
    )
    with patch.dict(os.environ, CREDENTIALS):
        spark = spark_session(chosen, in_real_time=not HAS_DELTA)
    for name, value in FEW_ROWS.items():
        spark.conf.set(name, value)
    for name, value in SOON_AWAY.items():
        spark.sparkContext._jsc.hadoopConfiguration().set(name, value)
    return spark


def sql_settings() -> dict[str, str]:
    """The SQL settings of the shared session; none if there is no session."""
    if not shared_spark.cache_info().currsize:
        return {}
    lines = shared_spark()._jsparkSession.conf().getAll().mkString("", "\0", "").split("\0")
    return dict(line.split(" -> ", 1) for line in lines if line.startswith("spark.sql."))


def restore_sql_settings(before: dict[str, str]) -> None:
    """Gives the shared session these settings again, if it had some."""
    after = sql_settings() if before else {}
    for name in before.keys() | after.keys():
        if name not in before:
            shared_spark().conf.unset(name)
        elif before[name] != after.get(name):
            shared_spark().conf.set(name, before[name])


def stop_shared_spark() -> None:
    """Stops the session, if there is one."""
    if shared_spark.cache_info().currsize:
        shared_spark().stop()
        shared_spark.cache_clear()


def one_line_error(done: "subprocess.CompletedProcess[str]", code: int = StreamgaugeError.exit_code) -> str:
    """The line by which a command refuses; fails unless it ended with `code` and said that line alone."""
    lines = done.stderr.strip().splitlines()
    if done.returncode != code or len(lines) != 1 or not lines[0].startswith("error: "):
        pytest.fail(
            f"exit code {code} and one line that begins with 'error: ' were expected, and found {done.returncode} and:\n{done.stderr}"
        )
    return lines[0]


def eventually(probe: Callable[[], T], what: str) -> T:
    """The first truthy answer of `probe`; fails with `what` was waited for, and the last answer."""
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        begun = time.monotonic()
        if answer := probe():
            return answer
        now = time.monotonic()
        if now > deadline:
            pytest.fail(f"waited {RETRY_SECONDS} s for {what}; the last answer was {answer!r}")
        time.sleep(max(0.1, 2 * (now - begun)))  # a probe that costs much would take the cores from what it waits for


def kafka_client_threads() -> set[str]:
    """The ids of the main threads of the Kafka clients that are open in this process: one for each.

    A client has a thread for each broker too, but one that lives on may start those again when it reconnects.
    """
    return {path.parent.name for path in Path("/proc/self/task").glob("*/comm") if path.read_text().strip() == "rdk:main"}
