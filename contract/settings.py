"""All settings: a frozen dataclass read from the environment. Nothing else reads the environment."""

import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import platformdirs

from contract import durations
from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.registry.server import RegistryServer, refuse_user_info
from contract.security.client_security import ClientSecurity
from contract.storage.paths import OBJECT_STORES, StoragePath, remote_folder

_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_WHOLE_SECONDS = 'a duration in whole numbers, from "1 second" on, such as "30 seconds" or "1 hour 30 minutes"'


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65534:  # noqa: PLR2004 - the range of TCP ports; the one above is the broker's controller
        raise ValueError(text)
    return port


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:  # reading an invalid port raises ValueError
        raise ValueError(text)
    return text


def _address_without_credentials(text: str) -> str:
    if "@" in urlsplit(text).netloc:
        raise ValueError(text)
    return _web_address(text)


def _from_zero(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError(text)
    return count


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _whole_seconds(text: str) -> str:
    # Keys of result topics have whole seconds, so windows that start within the same second would share a key.
    if "." in text:
        raise ValueError(text)
    try:
        durations.seconds(text, "this setting")
    except StreamgaugeError as error:
        raise ValueError(text) from error
    return text


def _folder_or_bucket(text: str) -> str:
    if "://" not in text or text.startswith("file:///"):
        return text.removeprefix("file://")
    return _bucket(text)


def _bucket(text: str) -> str:
    parts = urlsplit(text)
    # In abfss://container@account the @ marks no password.
    if parts.scheme not in OBJECT_STORES or not parts.netloc or ("@" in parts.netloc and parts.scheme != "abfss"):
        raise ValueError(text)
    return text.rstrip("/")


def _landing(text: str) -> str:
    if not text.startswith("files:") or "://" in text or not text.removeprefix("files:"):
        raise ValueError(text)
    return text


def _setting(
    variable: str,
    default: Any,  # noqa: ANN401 - as `field`
    meaning: str,
    *,
    read: Callable[[str], Any] = str,
    expected: str = "text",
    shown: str | None = None,
    is_secret: bool = False,
) -> Any:  # noqa: ANN401
    metadata = {"variable": variable, "meaning": meaning, "read": read, "expected": expected, "shown": shown, "is_secret": is_secret}
    return field(default=default, repr=not is_secret, metadata=metadata)


def _shown(default: Any) -> str:  # noqa: ANN401
    return "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


@dataclass(frozen=True)
class Settings:
    """The settings of all programs. An unset or empty variable means the default."""

    home: Path = _setting("STREAMGAUGE_HOME", Path(".streamgauge"), "data of the embedded platform, checkpoints, tables, logs", read=Path)
    cache: Path = _setting(
        "STREAMGAUGE_CACHE",
        Path(platformdirs.user_cache_dir("streamgauge")),
        "jars and downloads, shared by all homes",
        read=Path,
        shown="the user's cache folder",
    )
    lake_uri: str = _setting(
        "LAKE_URI",
        "",
        "the folder of the tables, if it is to be another one than `lake` in STREAMGAUGE_HOME; or of an object store: docs/object-stores.md",
        read=_folder_or_bucket,
        expected="a folder, as a path or file:///path, or an object store, as s3a://bucket/folder, abfss://... or gs://...",
    )
    checkpoint_uri: str = _setting(
        "CHECKPOINT_URI",
        "",
        "the folder of an object store for checkpoints, if they are not to be in STREAMGAUGE_HOME: docs/object-stores.md",
        read=_bucket,
        expected="an object store, as s3a://bucket/folder, abfss://... or gs://...",
    )
    owner_name: str = _setting(
        "STREAMGAUGE_OWNER",
        "",
        "to whom the checkpoints of CHECKPOINT_URI belong, which nobody else may use; unset: this machine's name and STREAMGAUGE_HOME",
    )
    aws_endpoint_url: str = _setting(
        "AWS_ENDPOINT_URL",
        "",
        "the S3 of LAKE_URI and CHECKPOINT_URI, if it is not Amazon's",
        read=_address_without_credentials,
        expected="an address that begins with http:// or https://, without a name and password",
    )
    aws_region: str = _setting("AWS_REGION", "", "the region of that S3")
    java_home: str = _setting("STREAMGAUGE_JAVA_HOME", "", "a Java 17 or 21 to use instead of the one that was installed with Streamgauge")
    maven_url: str = _setting(
        "STREAMGAUGE_MAVEN_URL",
        "https://repo1.maven.org/maven2",
        "the Maven repository that jars are fetched from",
        read=_web_address,
        expected="an address that begins with http:// or https://",
    )
    kafka_port: int = _setting(
        "STREAMGAUGE_KAFKA_PORT",
        9092,
        "port of the embedded broker; the next one is its controller's",
        read=_port,
        expected="a port, 1 to 65534",
    )
    dashboard_host: str = _setting(
        "STREAMGAUGE_DASHBOARD_HOST",
        "127.0.0.1",
        "address that the dashboard listens on; it asks nobody who they are, so others than loopback need a guard before it",
    )
    dashboard_port: int = _setting("STREAMGAUGE_DASHBOARD_PORT", 8501, "port of the dashboard", read=_port, expected="a port, 1 to 65534")
    kafka_bootstrap_servers: str = _setting("KAFKA_BOOTSTRAP_SERVERS", "", "a Kafka of your own; none is started then")
    kafka_client_properties: Path | None = _setting(
        "KAFKA_CLIENT_PROPERTIES",
        None,
        "a file of Kafka client properties, by which every client of a Kafka of your own shows who it is: docs/security.md",
        read=Path,
    )
    registry_port: int = _setting(
        "STREAMGAUGE_REGISTRY_PORT", 8081, "port of the embedded schema registry", read=_port, expected="a port, 1 to 65534"
    )
    schema_registry_url: str = _setting(
        "SCHEMA_REGISTRY_URL",
        "",
        "a schema registry of your own, Confluent-compatible; none is started then",
        read=refuse_user_info,
        expected="an address that begins with http:// or https://",
    )
    schema_registry_properties: Path | None = _setting(
        "SCHEMA_REGISTRY_PROPERTIES",
        None,
        "a file of properties, by which every client of a registry of your own shows who it is: docs/security.md",
        read=Path,
    )
    wikimedia_url: str = _setting(
        "WIKIMEDIA_URL",
        "https://stream.wikimedia.org/v2/stream/recentchange",
        "the live stream of wiki edits, server-sent events",
        read=_web_address,
        expected="an address that begins with http:// or https://",
    )
    wikimedia_user_agent: str = _setting(
        "WIKIMEDIA_USER_AGENT",
        "streamgauge/0.1 (streaming reference application; set WIKIMEDIA_USER_AGENT to name yourself)",
        "who asks for the live stream: Wikimedia wants a name and a way to reach you",
    )
    wikimedia_silence_seconds: int = _setting(
        "WIKIMEDIA_SILENCE_SECONDS",
        30,
        "how long the live stream may be silent before the connection is reopened",
        read=_count,
        expected="a whole number from 1",
    )
    wikimedia_window: str = _setting(
        "STREAMGAUGE_WIKIMEDIA_WINDOW",
        "60 seconds",
        "length of the windows that edits are counted in",
        read=_whole_seconds,
        expected=_WHOLE_SECONDS,
    )
    wikimedia_slide: str = _setting(
        "STREAMGAUGE_WIKIMEDIA_SLIDE",
        "30 seconds",
        "how far apart those windows start",
        read=_whole_seconds,
        expected=_WHOLE_SECONDS,
    )
    wikimedia_watermark: str = _setting("STREAMGAUGE_WIKIMEDIA_WATERMARK", "60 seconds", "how late an edit may be and still count")
    spark_master: str = _setting("SPARK_MASTER", "local[*]", "the Spark master: this machine, or spark://host:7077")
    driver_memory: str = _setting("STREAMGAUGE_DRIVER_MEMORY", "1g", "heap of the Spark driver")
    driver_java_options: str = _setting(
        "STREAMGAUGE_DRIVER_JAVA_OPTIONS",
        "",
        "further options of the Spark driver's Java, such as -Djava.security.krb5.conf=/etc/krb5.conf",
    )
    shared_home: bool = _setting(
        "STREAMGAUGE_SHARED_HOME",
        default=False,
        meaning="whether every Spark worker has STREAMGAUGE_HOME, and LAKE_URI, under the same path; a cluster needs that",
        read=_truth,
        expected="true or false",
    )
    driver_host: str = _setting(
        "STREAMGAUGE_DRIVER_HOST",
        "",
        "the name or address by which Spark workers reach the driver; unset: this machine's on its way to the master",
    )
    executor_memory: str = _setting("STREAMGAUGE_EXECUTOR_MEMORY", "1g", "heap of each executor of a cluster")
    executor_cores: int | None = _setting(
        "STREAMGAUGE_EXECUTOR_CORES",
        None,
        "cores of each executor of a cluster; unset: all of its worker",
        read=_count,
        expected="a whole number from 1",
    )
    max_cores: int | None = _setting(
        "STREAMGAUGE_MAX_CORES",
        None,
        "cores that one command takes of a cluster at most; unset: all, and the next command waits",
        read=_count,
        expected="a whole number from 1",
    )
    shuffle_partitions: int = _setting(
        "STREAMGAUGE_SHUFFLE_PARTITIONS",
        min(os.cpu_count() or 2, 8),
        "shuffle partitions; a query keeps those of its first run",
        read=_count,
        expected="a whole number from 1",
        shown="the cores, at most 8",
    )
    watermark: str = _setting(
        "STREAMGAUGE_WATERMARK", "10 minutes", "how late an event may be, behind the farthest of its own partition, and still count"
    )
    taxi_slide: str = _setting(
        "STREAMGAUGE_TAXI_SLIDE",
        "1 hour",
        "how often an hour of the taxi statistics begins",
        read=_whole_seconds,
        expected=_WHOLE_SECONDS,
    )
    future: str = _setting(
        "STREAMGAUGE_FUTURE",
        "10 minutes",
        "how far ahead of its record's clock an event may be and still count; one further ahead is a dead letter",
        read=_whole_seconds,
        expected=_WHOLE_SECONDS,
    )
    partition_skew: str = _setting(
        "STREAMGAUGE_PARTITION_SKEW", "7 days", "how far, in event time, an idle partition can hold the watermark behind the farthest one"
    )
    result_retention: str = _setting(
        "STREAMGAUGE_RESULT_RETENTION",
        "35 days",
        "how old a row may be, behind the newest window of its table and in event time, before `streamgauge expire` deletes it",
    )
    trigger_seconds: float = _setting(
        "STREAMGAUGE_TRIGGER_SECONDS",
        0.0,
        "least time between the starts of two batches of a query; 0: as soon as there is something. The demo takes 1",
        read=_seconds,
        expected="seconds, 0 or more",
        shown="0",
    )
    starting_offsets: str = _setting(
        "STREAMGAUGE_STARTING_OFFSETS", "earliest", "where a new query starts: earliest, latest, or JSON of topic, partition and offset"
    )
    max_offsets_per_trigger: int | None = _setting(
        "STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER",
        None,
        "records a micro-batch takes at most; unset: all there are",
        read=_count,
        expected="a whole number from 1",
    )
    nest_source: str = _setting(
        "STREAMGAUGE_NEST_SOURCE",
        "",
        "a folder, as `files:/data/landing`: the Nest queries read the documents that land there, and not topic `nest-logs`, which is the default",
        read=_landing,
        expected="files: and a folder, such as files:/data/landing",
    )
    max_files_per_trigger: int | None = _setting(
        "STREAMGAUGE_MAX_FILES_PER_TRIGGER",
        None,
        "files a micro-batch takes at most; unset: all there are",
        read=_count,
        expected="a whole number from 1",
    )
    latest_first: bool = _setting(
        "STREAMGAUGE_LATEST_FIRST",
        default=False,
        meaning="of files that wait, read the newest ones first",
        read=_truth,
        expected="true or false",
    )
    fail_on_data_loss: bool = _setting(
        "STREAMGAUGE_FAIL_ON_DATA_LOSS",
        default=True,
        meaning="stop when records that were not yet read are gone from Kafka",
        read=_truth,
        expected="true or false",
    )
    take_new_fields: bool = _setting(
        "STREAMGAUGE_TAKE_NEW_FIELDS",
        default=True,
        meaning="whether a field that is new in an ingested topic becomes a column of its table; otherwise the table's schema names it as left out",
        read=_truth,
        expected="true or false",
    )

    delta_archives: str = _setting(
        "STREAMGAUGE_DELTA_ARCHIVES",
        "",
        "archives that `streamgauge run` writes as Delta tables and not as Parquet files: names of queries, such as `nest-archive taxi-archive`, or all",
    )

    restart_limit: int = _setting(
        "STREAMGAUGE_RESTART_LIMIT",
        3,
        "how often a query that fails is started again, within STREAMGAUGE_RESTART_SECONDS, before it is given up",
        read=_from_zero,
        expected="a whole number, 0 or more",
    )
    restart_seconds: float = _setting(
        "STREAMGAUGE_RESTART_SECONDS",
        300.0,
        "failures longer ago than this do not count",
        read=_seconds,
        expected="seconds, 0 or more",
        shown="300",
    )
    alert_webhook_url: str = _setting(
        "ALERT_WEBHOOK_URL",
        "",
        "where alerts are sent to by POST, besides topic `alerts`: JSON, as chat programs take it",
        read=_web_address,
        expected="an address that begins with http:// or https://",
        is_secret=True,
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads the settings and the properties files that they name.

        Raises StreamgaugeError with the variable, its value and the expected values.
        """
        given: dict[str, Any] = {}
        for setting in fields(cls):
            variable, text = setting.metadata["variable"], environment.get(setting.metadata["variable"], "")
            if not text:
                continue
            try:
                given[setting.name] = setting.metadata["read"](text)
            except (ValueError, KeyError) as error:
                # Text before an @ may be a password, even if it is not a valid URL.
                found = "something else" if setting.metadata["is_secret"] else repr(re.sub(r"(?s).*@", "***@", text))
                msg = f"{variable} is {found}; expected {setting.metadata['expected']}"
                raise StreamgaugeError(msg) from error
        settings = cls(**given)
        settings._check_access()
        return settings

    def _check_access(self) -> None:
        """Reads the client properties of Kafka and the registry, so that errors in them are reported before anything starts."""
        _ = self.kafka, self.registry

    def environment(self) -> dict[str, str]:
        """All variables, to give another process these settings regardless of its own environment."""
        values = {f.metadata["variable"]: getattr(self, f.name) for f in fields(self)}
        return {variable: "" if value is None else str(value) for variable, value in values.items()}

    @classmethod
    def table(cls) -> list[tuple[str, str, str]]:
        """Variable, default and meaning of every setting, for the documentation."""
        return [(f.metadata["variable"], f.metadata["shown"] or _shown(f.default), f.metadata["meaning"]) for f in fields(cls)]

    @cached_property
    def kafka(self) -> KafkaCluster:
        """The Kafka cluster that all programs use: the user's own, or the embedded broker on loopback.

        Raises StreamgaugeError when its client properties are invalid.
        """
        if self.kafka_client_properties is None:
            return KafkaCluster(self.bootstrap_servers)
        if not self.kafka_bootstrap_servers:
            msg = "KAFKA_CLIENT_PROPERTIES is for a Kafka of your own, and the embedded broker takes no such clients; name yours by KAFKA_BOOTSTRAP_SERVERS, or unset it"
            raise StreamgaugeError(msg)
        return KafkaCluster(self.bootstrap_servers, ClientSecurity.read(self.kafka_client_properties, os.environ))

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap servers of that cluster, for display."""
        return self.kafka_bootstrap_servers or f"127.0.0.1:{self.kafka_port}"

    @cached_property
    def registry(self) -> RegistryServer:
        """The schema registry that all programs use: the user's own, or the embedded one on loopback under its Confluent-compatible path.

        Raises StreamgaugeError when its properties are invalid.
        """
        if self.schema_registry_properties is None:
            return RegistryServer(self.registry_url)
        if not self.schema_registry_url:
            msg = "SCHEMA_REGISTRY_PROPERTIES is for a schema registry of your own; name it by SCHEMA_REGISTRY_URL, or unset it"
            raise StreamgaugeError(msg)
        return RegistryServer.read(self.registry_url, self.schema_registry_properties, os.environ)

    @property
    def registry_url(self) -> str:
        """URL of that registry, for display."""
        return self.schema_registry_url or f"http://127.0.0.1:{self.registry_port}/apis/ccompat/v7"

    @property
    def logs(self) -> Path:
        """The logs of child processes and Spark."""
        return self.home / "logs"

    @property
    def checkpoints(self) -> StoragePath:
        """The folder of all checkpoints. It has one subfolder per query, version and mode."""
        if self.checkpoint_uri:
            return remote_folder("CHECKPOINT_URI", self.checkpoint_uri, self.aws_endpoint_url)
        return self.checkpoint_notes

    @property
    def checkpoint_notes(self) -> Path:
        """Notes shared by this machine's processes: which process uses which checkpoint."""
        return self.home.absolute() / "checkpoints"

    @property
    def owner(self) -> str:
        """The owner of checkpoints that this installation creates in an object store."""
        return self.owner_name or f"{platform.node()}:{self.home.absolute()}"

    @property
    def lake(self) -> StoragePath:
        """The folder of the file-based tables, on disk or in an object store."""
        if self.is_lake_remote:
            return remote_folder("LAKE_URI", self.lake_uri, self.aws_endpoint_url)
        return Path(self.lake_uri).absolute() if self.lake_uri else self.home.absolute() / "lake"

    @property
    def uses_s3(self) -> bool:
        """Whether tables or checkpoints are in S3."""
        return any(uri.startswith("s3a:") for uri in (self.lake_uri, self.checkpoint_uri))

    @property
    def is_lake_remote(self) -> bool:
        """Whether the tables are in an object store."""
        return "://" in self.lake_uri
