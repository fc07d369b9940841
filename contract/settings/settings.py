"""All settings: a frozen dataclass read from the environment. Nothing else reads the environment."""

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import platformdirs

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.registry.server import RegistryServer
from contract.security.client_security import ClientSecurity
from contract.settings.kinds import (
    ADDRESS_WITHOUT_CREDENTIALS,
    COUNT,
    COUNT_OR_ZERO,
    DATABASE,
    DURATION,
    FLAG,
    FOLDER_OR_OBJECT_STORE,
    KAFKA_OPTIONS,
    LANDING_FOLDER,
    OBJECT_STORE,
    PATH,
    PORT,
    REGISTRY_ADDRESS,
    SECONDS,
    TEXT,
    WEB_ADDRESS,
    Kind,
)
from contract.storage.paths import StoragePath, remote_folder


def _setting(
    variable: str,
    default: Any,  # noqa: ANN401 - as `field`
    meaning: str,
    kind: Kind = TEXT,
    *,
    shown: str | None = None,
    is_secret: bool = False,
) -> Any:  # noqa: ANN401
    metadata = {"variable": variable, "meaning": meaning, "kind": kind, "shown": shown, "is_secret": is_secret}
    return field(default=default, repr=not is_secret, metadata=metadata)


def _shown(default: Any) -> str:  # noqa: ANN401
    match default:
        case None:
            return ""
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
    return str(default)


@dataclass(frozen=True)
class Settings:
    """The settings of all programs. An unset or empty variable means the default."""

    home: Path = _setting("STREAMGAUGE_HOME", Path(".streamgauge"), "data of the embedded servers, checkpoints, tables and logs", PATH)
    cache: Path = _setting(
        "STREAMGAUGE_CACHE",
        Path(platformdirs.user_cache_dir("streamgauge")),
        "jars and other downloads, shared by all homes",
        PATH,
        shown="the user's cache folder",
    )
    lake_uri: str = _setting(
        "LAKE_URI",
        "",
        "the folder of the tables, in the file system or an object store (docs/object-stores.md); unset: `lake` in STREAMGAUGE_HOME",
        FOLDER_OR_OBJECT_STORE,
    )
    checkpoint_uri: str = _setting(
        "CHECKPOINT_URI",
        "",
        "the folder of an object store for checkpoints (docs/object-stores.md); unset: `checkpoints` in STREAMGAUGE_HOME",
        OBJECT_STORE,
    )
    owner_name: str = _setting(
        "STREAMGAUGE_OWNER",
        "",
        "the owner of the checkpoints in CHECKPOINT_URI; others cannot use them; unset: this machine's name and STREAMGAUGE_HOME",
    )
    aws_endpoint_url: str = _setting(
        "AWS_ENDPOINT_URL", "", "the S3 service of LAKE_URI and CHECKPOINT_URI; unset: Amazon's", ADDRESS_WITHOUT_CREDENTIALS
    )
    aws_region: str = _setting("AWS_REGION", "", "the region of that S3 service")
    java_home: str = _setting("STREAMGAUGE_JAVA_HOME", "", "a Java 17 or 21 to use instead of the one installed with Streamgauge")
    maven_url: str = _setting(
        "STREAMGAUGE_MAVEN_URL", "https://repo1.maven.org/maven2", "the Maven repository to download jars from", WEB_ADDRESS
    )
    kafka_port: int = _setting("STREAMGAUGE_KAFKA_PORT", 9092, "port of the embedded broker; its controller uses the next port", PORT)
    dashboard_host: str = _setting(
        "STREAMGAUGE_DASHBOARD_HOST",
        "127.0.0.1",
        "the address that the dashboard listens on; it has no login, so put a proxy with one in front of it if it listens on more than loopback",
    )
    dashboard_port: int = _setting("STREAMGAUGE_DASHBOARD_PORT", 8501, "port of the dashboard", PORT)
    kafka_bootstrap_servers: str = _setting("KAFKA_BOOTSTRAP_SERVERS", "", "your own Kafka; no broker is started")
    kafka_client_properties: Path | None = _setting(
        "KAFKA_CLIENT_PROPERTIES",
        None,
        "a file of Kafka client properties with which all clients authenticate to your own Kafka (docs/security.md)",
        PATH,
    )
    kafka_options: str = _setting(
        "STREAMGAUGE_KAFKA_OPTIONS",
        "",
        "more options of Spark's Kafka clients, such as `max.poll.records=10000 compression.type=zstd` (docs/tuning.md)",
        KAFKA_OPTIONS,
    )
    replication_factor: int | None = _setting(
        "STREAMGAUGE_REPLICATION_FACTOR",
        None,
        "the number of replicas of each partition of the topics that `streamgauge up` creates; unset: the broker's default",
        COUNT,
    )
    min_insync_replicas: int | None = _setting(
        "STREAMGAUGE_MIN_INSYNC_REPLICAS",
        None,
        "the smallest number of in-sync replicas (`min.insync.replicas`) of the topics that `streamgauge up` creates; unset: the broker's default",
        COUNT,
    )
    registry_port: int = _setting("STREAMGAUGE_REGISTRY_PORT", 8081, "port of the embedded schema registry", PORT)
    schema_registry_url: str = _setting(
        "SCHEMA_REGISTRY_URL", "", "your own Confluent-compatible schema registry; none is started", REGISTRY_ADDRESS
    )
    schema_registry_properties: Path | None = _setting(
        "SCHEMA_REGISTRY_PROPERTIES",
        None,
        "a file of properties with which all clients authenticate to your own schema registry (docs/security.md)",
        PATH,
    )
    wikimedia_url: str = _setting(
        "WIKIMEDIA_URL",
        "https://stream.wikimedia.org/v2/stream/recentchange",
        "the live stream of wiki edits (server-sent events)",
        WEB_ADDRESS,
    )
    wikimedia_user_agent: str = _setting(
        "WIKIMEDIA_USER_AGENT",
        "streamgauge/0.1 (streaming reference application; set WIKIMEDIA_USER_AGENT to name yourself)",
        "the User-Agent header for the live stream; Wikimedia requires a name and a way to contact you",
    )
    wikimedia_silence_seconds: int = _setting(
        "WIKIMEDIA_SILENCE_SECONDS", 30, "the live stream is reconnected after this many seconds without an event", COUNT
    )
    wikimedia_window: str = _setting(
        "STREAMGAUGE_WIKIMEDIA_WINDOW", "60 seconds", "length of the windows in which edits are counted", DURATION
    )
    wikimedia_slide: str = _setting(
        "STREAMGAUGE_WIKIMEDIA_SLIDE", "30 seconds", "the time between the starts of two such windows", DURATION
    )
    wikimedia_watermark: str = _setting("STREAMGAUGE_WIKIMEDIA_WATERMARK", "60 seconds", "how late an edit may be and still count")
    spark_master: str = _setting("SPARK_MASTER", "local[*]", "the Spark master: this machine, or spark://host:7077")
    driver_memory: str = _setting("STREAMGAUGE_DRIVER_MEMORY", "1g", "heap of the Spark driver")
    driver_java_options: str = _setting(
        "STREAMGAUGE_DRIVER_JAVA_OPTIONS", "", "more Java options of the Spark driver, such as -Djava.security.krb5.conf=/etc/krb5.conf"
    )
    shared_home: bool = _setting(
        "STREAMGAUGE_SHARED_HOME",
        default=False,
        meaning="whether all Spark workers have STREAMGAUGE_HOME and LAKE_URI under the same paths; a cluster requires it unless LAKE_URI and CHECKPOINT_URI are both in an object store",
        kind=FLAG,
    )
    driver_host: str = _setting(
        "STREAMGAUGE_DRIVER_HOST",
        "",
        "the name or address of the driver for Spark workers; unset: the address of this machine on its way to the master",
    )
    executor_memory: str = _setting("STREAMGAUGE_EXECUTOR_MEMORY", "1g", "heap of each executor of a cluster")
    executor_cores: int | None = _setting(
        "STREAMGAUGE_EXECUTOR_CORES", None, "cores of each executor of a cluster; unset: all cores of its worker", COUNT
    )
    max_cores: int | None = _setting(
        "STREAMGAUGE_MAX_CORES",
        None,
        "the maximum number of cores that one command uses on a cluster; unset: all, and the next command waits",
        COUNT,
    )
    spark_ui_port: int | None = _setting(
        "STREAMGAUGE_SPARK_UI_PORT", None, "port of Spark's own web UI on loopback (docs/tuning.md); unset: no UI", PORT
    )
    shuffle_partitions: int = _setting(
        "STREAMGAUGE_SHUFFLE_PARTITIONS",
        min(os.cpu_count() or 2, 8),
        "number of shuffle partitions; a query keeps the number of its first run",
        COUNT,
        shown="the number of cores, at most 8",
    )
    watermark: str = _setting(
        "STREAMGAUGE_WATERMARK",
        "10 minutes",
        "how late an event may be, compared with the latest event of its own partition, and still count",
    )
    taxi_slide: str = _setting(
        "STREAMGAUGE_TAXI_SLIDE", "1 hour", "the time between the starts of two windows of the taxi statistics, each an hour long", DURATION
    )
    future: str = _setting(
        "STREAMGAUGE_FUTURE",
        "10 minutes",
        "how far an event may be ahead of its record's clock and still count; events further ahead are dead letters",
        DURATION,
    )
    offline_after: str = _setting(
        "STREAMGAUGE_OFFLINE_AFTER", "10 minutes", "how long, in event time, a Nest camera may be silent before it is offline", DURATION
    )
    inactive_after: str = _setting(
        "STREAMGAUGE_INACTIVE_AFTER",
        "1 day",
        "how long, in event time, a Nest camera may see nobody before its activity is over; reset `nest-camera-activity` after a change",
        DURATION,
    )
    crowd: int = _setting(
        "STREAMGAUGE_CROWD", 1000, "how many people seen in a zip code and hour are a crowd; reset `nest-crowds` after a change", COUNT
    )
    partition_skew: str = _setting(
        "STREAMGAUGE_PARTITION_SKEW", "7 days", "how far, in event time, an idle partition can hold the watermark back"
    )
    result_retention: str = _setting(
        "STREAMGAUGE_RESULT_RETENTION",
        "35 days",
        "how old a row may be, in event time and compared with the newest window of its table, before `streamgauge expire` deletes it",
    )
    trigger_seconds: float = _setting(
        "STREAMGAUGE_TRIGGER_SECONDS",
        0.0,
        "minimum time between the starts of two batches of a query; 0: a batch starts as soon as there is new data. The demo uses 3",
        SECONDS,
    )
    real_time: str = _setting(
        "STREAMGAUGE_REAL_TIME",
        "",
        "how often queries in Spark's real-time mode write a checkpoint, such as `10 seconds` (docs/real-time.md); unset: micro-batches",
        DURATION,
    )
    starting_offsets: str = _setting(
        "STREAMGAUGE_STARTING_OFFSETS", "earliest", "where a new query starts: earliest, latest, or JSON of topic, partition and offset"
    )
    max_offsets_per_trigger: int | None = _setting(
        "STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER", None, "maximum number of records in a micro-batch; unset: all that are there", COUNT
    )
    nest_source: str = _setting(
        "STREAMGAUGE_NEST_SOURCE",
        "",
        "a folder whose files the Nest queries read instead of topic `nest-logs`, such as `files:/data/landing`; unset: the topic",
        LANDING_FOLDER,
    )
    max_files_per_trigger: int | None = _setting(
        "STREAMGAUGE_MAX_FILES_PER_TRIGGER", None, "maximum number of files in a micro-batch; unset: all that are there", COUNT
    )
    latest_first: bool = _setting(
        "STREAMGAUGE_LATEST_FIRST", default=False, meaning="whether the newest waiting files are read first", kind=FLAG
    )
    fail_on_data_loss: bool = _setting(
        "STREAMGAUGE_FAIL_ON_DATA_LOSS",
        default=True,
        meaning="whether a query stops when Kafka has deleted records that it has not read",
        kind=FLAG,
    )
    take_new_fields: bool = _setting(
        "STREAMGAUGE_TAKE_NEW_FIELDS",
        default=True,
        meaning="whether a new field of an ingested topic becomes a column of its table; otherwise the table's schema lists it as left out",
        kind=FLAG,
    )
    delta_archives: str = _setting(
        "STREAMGAUGE_DELTA_ARCHIVES",
        "",
        "archives that `streamgauge run` writes as Delta tables instead of Parquet files: names of queries, such as `nest-archive taxi-archive`, or all",
    )
    database_url: str = _setting(
        "STREAMGAUGE_DATABASE_URL",
        "",
        "the database in which `streamgauge run` also keeps the result tables (docs/database.md): PostgreSQL or SQLite; unset: none",
        DATABASE,
        is_secret=True,
    )
    restart_limit: int = _setting(
        "STREAMGAUGE_RESTART_LIMIT",
        3,
        "how often a failing query is restarted within STREAMGAUGE_RESTART_SECONDS before it is given up",
        COUNT_OR_ZERO,
    )
    restart_seconds: float = _setting("STREAMGAUGE_RESTART_SECONDS", 300.0, "failures longer ago than this do not count", SECONDS)
    alert_lag: int = _setting(
        "STREAMGAUGE_ALERT_LAG", 100_000, "alert when a query is behind by more records than this for a minute; 0: never", COUNT_OR_ZERO
    )
    alert_slow_seconds: float = _setting(
        "STREAMGAUGE_ALERT_SLOW_SECONDS",
        60.0,
        "alert when records arrive faster than a query processes them for this long; 0: never",
        SECONDS,
    )
    alert_silent_seconds: float = _setting(
        "STREAMGAUGE_ALERT_SILENT_SECONDS",
        600.0,
        "alert when the source of a query has no new record for this long; 0: never",
        SECONDS,
    )
    alert_watermark_seconds: float = _setting(
        "STREAMGAUGE_ALERT_WATERMARK_SECONDS",
        600.0,
        "alert when the watermark of a query stands still for this long while it reads records; 0: never",
        SECONDS,
    )
    alert_webhook_url: str = _setting(
        "ALERT_WEBHOOK_URL",
        "",
        "an address to which alerts are sent by POST, in addition to topic `alerts`: JSON, as chat programs accept it",
        WEB_ADDRESS,
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
                given[setting.name] = setting.metadata["kind"].read(text)
            except (ValueError, KeyError) as error:
                # Text before an @ may be a password, even if it is not a valid URL.
                found = "something else" if setting.metadata["is_secret"] else repr(re.sub(r"(?s).*@", "***@", text))
                msg = f"{variable} is {found}; expected {setting.metadata['kind'].expected}"
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
            msg = "KAFKA_CLIENT_PROPERTIES is for your own Kafka, and the embedded broker does not use it; set KAFKA_BOOTSTRAP_SERVERS too, or unset it"
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
            msg = "SCHEMA_REGISTRY_PROPERTIES is for your own schema registry; set SCHEMA_REGISTRY_URL too, or unset it"
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
