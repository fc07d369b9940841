"""The embedded Kafka: one real Apache Kafka broker in KRaft mode, on loopback, set for a small machine."""

import base64
import socket
import subprocess
import time
import uuid
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from filelock import FileLock, Timeout

from streamgauge.errors import StreamgaugeError
from streamgauge.local import jars
from streamgauge.local.java import java_home
from streamgauge.local.processes import GuardedProcess, PidFile, log_tail, start_detached, stop_process
from streamgauge.settings import Settings
from streamgauge.topics import LARGEST_RECORD_BYTES

HOST = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 8
_LOGGING = Path(__file__).with_name("kafka-log4j2.properties")
_JAVA_FLAGS = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC")


def answers(bootstrap_servers: str, timeout_seconds: float = 2) -> bool:
    """Whether a broker answers a metadata request."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        admin.list_topics(timeout=timeout_seconds)
    except KafkaException:
        return False
    return True


class EmbeddedKafka:
    """The broker of one STREAMGAUGE_HOME. Its data outlives it; a broker that was killed starts again with its data."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.home.absolute() / "kafka"
        self.log = settings.logs.absolute() / "kafka.log"
        self.pid_file = PidFile(self.folder / "broker.pid")
        self.guarded: GuardedProcess | None = None

    @property
    def process(self) -> psutil.Process | None:
        """The running broker (or the guard that it runs under), or None."""
        return self.pid_file.process()

    def start(self, *, detached: bool) -> bool:
        """Starts the broker and waits until it answers; False if it was running already.

        `detached`: it outlives this process (`up`); otherwise it ends with it (`demo`).
        Raises StreamgaugeError when a port is taken, another start is under way, or the broker ends instead of answering.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / "start.lock", timeout=START_SECONDS):
                if self.process is not None:
                    self._wait_until_it_answers()
                    return False
                self._start(detached=detached)
        except Timeout as error:
            msg = (
                f"another start of the broker in {self.folder} has been under way for {START_SECONDS} s; wait for it, or look at {self.log}"
            )
            raise StreamgaugeError(msg) from error
        return True

    def stop(self) -> bool:
        """Stops the broker; False if none was running."""
        if self.guarded is not None:
            self.guarded.stop()
            self.guarded = None
        process = self.process
        if process is not None:
            stop_process(process, STOP_SECONDS)
        self.pid_file.remove()
        return process is not None

    def _start(self, *, detached: bool) -> None:
        port = self.settings.kafka_port
        for taken in (port, port + 1):
            _refuse_a_taken_port(taken)
        java = str(java_home(self.settings) / "bin" / "java")
        class_path = jars.class_path(jars.fetch("kafka", self.settings))
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._server_properties().items()))
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(java, class_path, properties)
        flags = [*_JAVA_FLAGS, f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dstreamgauge.log={self.log}"]
        command = [java, *flags, "-cp", class_path, "kafka.Kafka", str(properties)]
        output = self.log.with_name("kafka.out")
        if detached:
            self.pid_file.write(start_detached(command, log=output).pid)
        else:
            self.guarded = GuardedProcess.start("kafka", command, log=output, grace_seconds=STOP_SECONDS)
            self.pid_file.write(self.guarded.pid)
        self._wait_until_it_answers()

    def _format(self, java: str, class_path: str, properties: Path) -> None:
        cluster_id = "-"
        while cluster_id.startswith("-"):  # the tool would take it for an option
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [
            java,
            "-cp",
            class_path,
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            "-t",
            cluster_id,
            "-c",
            str(properties),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            msg = f"Kafka could not format {self.folder / 'data'}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}; see that the folder can be written, or choose another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"{HOST}:{self.settings.kafka_port}"):
            if self.process is None or (self.guarded and not self.guarded.is_running):
                self.pid_file.remove()
                msg = f"the Kafka broker ended before it answered; the end of {self.log}:\n{log_tail(self.log)}"
                raise StreamgaugeError(msg)
            if time.monotonic() > deadline:
                msg = f"the Kafka broker (pid {self.process.pid}) does not answer at {HOST}:{self.settings.kafka_port} after {START_SECONDS} s; see {self.log}, or stop it with `streamgauge down`"
                raise StreamgaugeError(msg)

    def _server_properties(self) -> dict[str, str | int]:
        port = self.settings.kafka_port
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{port + 1}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{port + 1}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.cleaner.backoff.ms": 5000,
            "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
            "log.retention.check.interval.ms": 60_000,
        }


def _refuse_a_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            msg = f"port {port} on {HOST} is taken{_by_whom(port)}; stop that program, or choose another port with STREAMGAUGE_KAFKA_PORT (it and the next one are used), or use that Kafka with KAFKA_BOOTSTRAP_SERVERS"
            raise StreamgaugeError(msg) from error


def _by_whom(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port and connection.pid:
                return f" by {psutil.Process(connection.pid).name()}, pid {connection.pid}"
    except psutil.Error:
        return ""
    return ""
