"""All settings: a frozen dataclass read from the environment and a file. Nothing else reads them."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import platformdirs

from infrastructure import durations
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.registry.server import RegistryServer
from infrastructure.security.client_security import ClientSecurity
from infrastructure.settings import kinds, sources
from infrastructure.settings.kinds import Kind
from infrastructure.settings.sources import CONFIG, ExplicitSetting
from infrastructure.storage.paths import StoragePath, remote_folder

_HOME = Path(".streamgauge")


def _setting(variable: str, default: Any, kind: Kind = kinds.TEXT, *, is_secret: bool = False) -> Any:  # noqa: ANN401 - as `field`
    return field(default=default, repr=not is_secret, metadata={"variable": variable, "kind": kind})


def user_cache() -> Path:
    """The user's cache folder. In the default home for a user who is unknown to the machine, as in some containers, while HOME is unset."""
    try:
        return Path(platformdirs.user_cache_dir("streamgauge"))
    except RuntimeError:
        return _HOME / "cache"


@dataclass(frozen=True)
class Settings:
    """The settings of all programs. One that is unset or empty has its default."""

    home: Path = _setting("STREAMGAUGE_HOME", _HOME, kinds.PATH)
    """Data of the embedded servers, checkpoints, tables and logs."""
    cache: Path = _setting("STREAMGAUGE_CACHE", user_cache(), kinds.PATH)
    """Jars and other downloads, shared by all homes."""
    lake_uri: str = _setting("LAKE_URI", "", kinds.FOLDER_OR_OBJECT_STORE)
    """The folder of the tables, in the file system or an object store (docs/object-stores.md); unset: `lake` in STREAMGAUGE_HOME."""
    checkpoint_uri: str = _setting("CHECKPOINT_URI", "", kinds.OBJECT_STORE)
    """The folder of an object store for checkpoints (docs/object-stores.md); unset: `checkpoints` in STREAMGAUGE_HOME."""
    owner_name: str = _setting("STREAMGAUGE_OWNER", "")
    """The owner of the checkpoints in CHECKPOINT_URI; others cannot use them; unset: this machine's name and STREAMGAUGE_HOME."""
    aws_endpoint_url: str = _setting("AWS_ENDPOINT_URL", "", kinds.ADDRESS_WITHOUT_CREDENTIALS)
    """The S3 service of all s3a:// addresses; unset: Amazon's."""
    aws_region: str = _setting("AWS_REGION", "")
    """The region of that S3 service."""
    webhdfs_url: str = _setting("STREAMGAUGE_WEBHDFS_URL", "", kinds.ADDRESS_WITHOUT_CREDENTIALS)
    """The web interface of the NameNode of an hdfs:// URI; unset: port 9870 of the URI's host."""
    java_home: str = _setting("STREAMGAUGE_JAVA_HOME", "", kinds.FOLDER)
    """A Java 17 or 21 to use instead of the one installed with Streamgauge."""
    maven_url: str = _setting("STREAMGAUGE_MAVEN_URL", "https://repo1.maven.org/maven2", kinds.WEB_ADDRESS)
    """The Maven repository to download jars from."""
    kafka_port: int = _setting("STREAMGAUGE_KAFKA_PORT", 9092, kinds.PORT)
    """Port of the embedded broker."""
    dashboard_host: str = _setting("STREAMGAUGE_DASHBOARD_HOST", "127.0.0.1")
    """The address that the dashboard listens on; it has no login, so put a proxy with one in front of it if it listens on more than
    loopback."""
    dashboard_port: int = _setting("STREAMGAUGE_DASHBOARD_PORT", 8501, kinds.PORT)
    """Port of the dashboard."""
    kafka_bootstrap_servers: str = _setting("KAFKA_BOOTSTRAP_SERVERS", "")
    """Your own Kafka; no broker is started."""
    kafka_client_properties: Path | None = _setting("KAFKA_CLIENT_PROPERTIES", None, kinds.PATH)
    """A file of Kafka client properties with which all clients authenticate to your own Kafka (docs/security.md)."""
    kafka_options: str = _setting("STREAMGAUGE_KAFKA_OPTIONS", "", kinds.KAFKA_OPTIONS)
    """More options of Spark's Kafka clients, such as `max.poll.records=10000 compression.type=zstd` (docs/inside.md)."""
    topic_prefix: str = _setting("STREAMGAUGE_TOPIC_PREFIX", "", kinds.TOPIC_PREFIX)
    """The prefix of the names of all Streamgauge's topics and schema subjects, such as `team1.` (docs/security.md#minimum-acls)."""
    replication_factor: int | None = _setting("STREAMGAUGE_REPLICATION_FACTOR", None, kinds.COUNT)
    """The number of replicas of each partition of the topics that `streamgauge up` creates; unset: the broker's default."""
    min_insync_replicas: int | None = _setting("STREAMGAUGE_MIN_INSYNC_REPLICAS", None, kinds.COUNT)
    """The smallest number of in-sync replicas (`min.insync.replicas`) of the topics that `streamgauge up` creates; unset: the broker's
    default."""
    registry_port: int = _setting("STREAMGAUGE_REGISTRY_PORT", 8081, kinds.PORT)
    """Port of the embedded schema registry."""
    schema_registry_url: str = _setting("SCHEMA_REGISTRY_URL", "", kinds.REGISTRY_ADDRESS)
    """Your own Confluent-compatible schema registry; none is started."""
    schema_registry_properties: Path | None = _setting("SCHEMA_REGISTRY_PROPERTIES", None, kinds.PATH)
    """A file of properties with which all clients authenticate to your own schema registry (docs/security.md)."""
    wikimedia_url: str = _setting("WIKIMEDIA_URL", "https://stream.wikimedia.org/v2/stream/recentchange", kinds.WEB_ADDRESS)
    """The live stream of wiki edits (server-sent events)."""
    wikimedia_user_agent: str = _setting(
        "WIKIMEDIA_USER_AGENT",
        "streamgauge/0.1 (streaming reference application; set WIKIMEDIA_USER_AGENT to name yourself)",
        kinds.HEADER,
    )
    """The User-Agent header for the live stream; Wikimedia requires a name and a way to contact you."""
    wikimedia_silence_seconds: int = _setting("WIKIMEDIA_SILENCE_SECONDS", 30, kinds.COUNT)
    """The live stream is reconnected after this many seconds without an event."""
    wikimedia_window: str = _setting("STREAMGAUGE_WIKIMEDIA_WINDOW", "60 seconds", kinds.DURATION)
    """Length of the windows in which edits are counted."""
    wikimedia_slide: str = _setting("STREAMGAUGE_WIKIMEDIA_SLIDE", "30 seconds", kinds.DURATION)
    """The time between the starts of two such windows."""
    wikimedia_watermark: str = _setting("STREAMGAUGE_WIKIMEDIA_WATERMARK", "60 seconds", kinds.DURATION)
    """How late an edit may be and still count."""
    spark_master: str = _setting("SPARK_MASTER", "local[*]")
    """The Spark master: this machine, or spark://host:7077."""
    driver_memory: str = _setting("STREAMGAUGE_DRIVER_MEMORY", "1g")
    """Heap size of the Spark driver."""
    driver_java_options: str = _setting("STREAMGAUGE_DRIVER_JAVA_OPTIONS", "", kinds.JAVA_OPTIONS)
    """More Java options of the Spark driver, such as -Djava.security.krb5.conf=/etc/krb5.conf."""
    shared_home: bool = _setting("STREAMGAUGE_SHARED_HOME", default=False, kind=kinds.FLAG)
    """Whether all Spark workers have STREAMGAUGE_HOME and LAKE_URI under the same paths; a cluster requires it unless LAKE_URI and
    CHECKPOINT_URI are both in an object store."""
    driver_host: str = _setting("STREAMGAUGE_DRIVER_HOST", "")
    """The name or address of the driver for Spark workers; unset: the local address that reaches the master."""
    executor_memory: str = _setting("STREAMGAUGE_EXECUTOR_MEMORY", "1g")
    """Heap size of each executor of a cluster."""
    executor_cores: int | None = _setting("STREAMGAUGE_EXECUTOR_CORES", None, kinds.COUNT)
    """Cores of each executor of a cluster; unset: all cores of its worker."""
    max_cores: int | None = _setting("STREAMGAUGE_MAX_CORES", None, kinds.COUNT)
    """The maximum number of cores that one command uses on a cluster; unset: all, and the next command waits."""
    spark_ui_port: int | None = _setting("STREAMGAUGE_SPARK_UI_PORT", None, kinds.PORT)
    """Port of Spark's own web UI on loopback (docs/inside.md); unset: no UI."""
    shuffle_partitions: int = _setting("STREAMGAUGE_SHUFFLE_PARTITIONS", min(os.cpu_count() or 2, 8), kinds.COUNT)
    """Number of shuffle partitions; a query keeps the number of its first run."""
    watermark: str = _setting("STREAMGAUGE_WATERMARK", "10 minutes", kinds.DURATION)
    """How late an event may be, compared with the latest event of its own partition, and still count."""
    nest_window: str = _setting("STREAMGAUGE_NEST_WINDOW", "1 hour", kinds.DURATION)
    """Length of the windows in which people and temperatures are counted (docs/upgrades.md before a change)."""
    taxi_window: str = _setting("STREAMGAUGE_TAXI_WINDOW", "1 hour", kinds.DURATION)
    """Length of the windows in which trips are counted (docs/upgrades.md before a change)."""
    taxi_slide: str = _setting("STREAMGAUGE_TAXI_SLIDE", "", kinds.DURATION)
    """The time between the starts of two windows of `taxi-borough-stats`; unset: the length of a window. The page shows those that do not
    overlap."""
    future: str = _setting("STREAMGAUGE_FUTURE", "10 minutes", kinds.DURATION)
    """How far an event may be ahead of its record's clock and still count; events further ahead are dead letters."""
    offline_after: str = _setting("STREAMGAUGE_OFFLINE_AFTER", "10 minutes", kinds.DURATION)
    """How long, in event time, a Nest camera may be silent before it is offline."""
    inactive_after: str = _setting("STREAMGAUGE_INACTIVE_AFTER", "1 day", kinds.DURATION)
    """How long, in event time, a Nest camera may see nobody before its activity is over; reset `nest-camera-activity` after a change."""
    crowd: int = _setting("STREAMGAUGE_CROWD", 1000, kinds.COUNT)
    """How many people seen in a zip code and window are a crowd; reset `nest-crowds` after a change."""
    partition_skew: str = _setting("STREAMGAUGE_PARTITION_SKEW", "7 days", kinds.DURATION)
    """In micro-batches, how far, in event time, an idle partition can hold the watermark back."""
    result_retention: str = _setting("STREAMGAUGE_RESULT_RETENTION", "35 days", kinds.DURATION)
    """How old a row may be, in event time and compared with the newest window of its table, before `streamgauge expire` deletes it."""
    trigger_seconds: float = _setting("STREAMGAUGE_TRIGGER_SECONDS", 0.0, kinds.SECONDS)
    """Minimum time between the starts of two batches of a query; 0: a batch starts as soon as there is new data. The demo uses 3."""
    real_time: str = _setting("STREAMGAUGE_REAL_TIME", "30 seconds", kinds.CHECKPOINT_INTERVAL)
    """How often queries in Spark's real-time mode write a checkpoint, from 5 seconds on (docs/real-time.md); off: all run in micro-batches."""
    starting_offsets: str = _setting("STREAMGAUGE_STARTING_OFFSETS", "earliest")
    """Where a new query starts: earliest, latest, or JSON of topic, partition and offset."""
    max_offsets_per_trigger: int = _setting("STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER", 100_000, kinds.COUNT)
    """Maximum number of records in a micro-batch. A backlog takes several, which bounds the memory that it needs. Not in real-time mode."""
    nest_source: str = _setting("STREAMGAUGE_NEST_SOURCE", "", kinds.LANDING_FOLDER)
    """A folder whose files the Nest queries read instead of topic `nest-logs`, such as `files:/data/landing` or
    `files:s3a://bucket/landing` (docs/files.md); unset: the topic."""
    max_files_per_trigger: int | None = _setting("STREAMGAUGE_MAX_FILES_PER_TRIGGER", None, kinds.COUNT)
    """Maximum number of files in a micro-batch; unset: all that are there."""
    latest_first: bool = _setting("STREAMGAUGE_LATEST_FIRST", default=False, kind=kinds.FLAG)
    """Whether the newest waiting files are read first."""
    fail_on_data_loss: bool = _setting("STREAMGAUGE_FAIL_ON_DATA_LOSS", default=True, kind=kinds.FLAG)
    """Whether a query stops when Kafka has deleted records that it has not read."""
    take_new_fields: bool = _setting("STREAMGAUGE_TAKE_NEW_FIELDS", default=True, kind=kinds.FLAG)
    """Whether a new field of an ingested topic becomes a column of its table; otherwise the table's schema lists it as left out."""
    delta_archives: str = _setting("STREAMGAUGE_DELTA_ARCHIVES", "")
    """Archives that `streamgauge run` writes as Delta tables instead of Parquet files: names of queries, such as `nest-archive
    taxi-archive`, or all."""
    database_url: str = _setting("STREAMGAUGE_DATABASE_URL", "", kinds.DATABASE, is_secret=True)
    """The database in which `streamgauge run` also keeps the result tables (docs/database.md): PostgreSQL or SQLite; unset: none."""
    static_tables: str = _setting("STREAMGAUGE_STATIC_TABLES", "", kinds.STATIC_TABLES)
    """Your own files in place of tables in `data/` that streams are joined with, such as `device_locations=/srv/cameras/*.csv`
    (docs/files.md#static-tables); unset: none."""
    restart_limit: int = _setting("STREAMGAUGE_RESTART_LIMIT", 3, kinds.COUNT_OR_ZERO)
    """How often a failing query is restarted before it is given up. A batch, or finding nothing to do, resets the count."""
    alert_lag: int = _setting("STREAMGAUGE_ALERT_LAG", 100_000, kinds.COUNT_OR_ZERO)
    """Alert when a query is behind by more records than this for a minute; 0: never."""
    alert_slow_seconds: float = _setting("STREAMGAUGE_ALERT_SLOW_SECONDS", 60.0, kinds.SECONDS)
    """Alert when records arrive faster than a query processes them for this long; 0: never."""
    alert_silent_seconds: float = _setting("STREAMGAUGE_ALERT_SILENT_SECONDS", 600.0, kinds.SECONDS)
    """Alert when the source of a query has no new record for this long; 0: never."""
    alert_watermark_seconds: float = _setting("STREAMGAUGE_ALERT_WATERMARK_SECONDS", 600.0, kinds.SECONDS)
    """Alert when the watermark of a query stands still for this long while it reads records; 0: never."""
    alert_webhook_url: str = _setting("ALERT_WEBHOOK_URL", "", kinds.WEB_ADDRESS, is_secret=True)
    """An address to which alerts are sent by POST, in addition to topic `alerts`: JSON, as chat programs accept it."""

    debug: bool = _setting("STREAMGAUGE_DEBUG", default=False, kind=kinds.FLAG)
    """Whether an error is printed with its traceback, too."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Reads the settings from the environment, the settings file, and the properties files that they name. The environment takes precedence.

        Raises StreamgaugeError with the variable or key, its value and the expected values.
        """
        explicit = cls.explicit(environment)
        values = {
            setting.name: explicit[variable].read(setting.metadata["kind"], is_secret=not setting.repr)
            for setting in fields(cls)
            if (variable := setting.metadata["variable"]) in explicit
        }
        settings = cls(**values)
        settings._refuse_equal_ports()
        settings._refuse_slides_that_do_not_fit()
        _ = settings.kafka, settings.registry  # reports errors in their properties files before anything starts
        return settings

    @classmethod
    def explicit(cls, environment: Mapping[str, str] | None = None) -> dict[str, ExplicitSetting]:
        """The settings that have an explicit value, by variable. See `sources.explicit_settings`."""
        return sources.explicit_settings({setting.metadata["variable"]: not setting.repr for setting in fields(cls)}, environment)

    def _refuse_equal_ports(self) -> None:
        """Raises StreamgaugeError if two servers of this machine are to listen on one port."""
        names = ["dashboard_port"]
        names += ["kafka_port"] * (not self.kafka_bootstrap_servers) + ["registry_port"] * (not self.schema_registry_url)
        by_port: dict[int, str] = {}
        for setting in fields(self):
            if setting.name in names:
                port, variable = getattr(self, setting.name), setting.metadata["variable"]
                if port in by_port:
                    msg = f"{by_port[port]} and {variable} are both {port}; choose different ports"
                    raise StreamgaugeError(msg)
                by_port[port] = variable

    def _refuse_slides_that_do_not_fit(self) -> None:
        """Raises StreamgaugeError if windows do not begin at regular places of the window before: each event is then in as many windows."""
        for name in ("wikimedia", "taxi"):
            variable, slide, window = f"STREAMGAUGE_{name.upper()}_SLIDE", getattr(self, f"{name}_slide"), getattr(self, f"{name}_window")
            if slide and durations.seconds(window, "") % durations.seconds(slide, ""):
                msg = f"{variable} is {slide!r}; expected {window!r}, the length of a window, or a half, third or other whole part of it"
                raise StreamgaugeError(msg)

    def environment(self) -> dict[str, str]:
        """All variables, to give another process these settings regardless of its own environment and any file."""
        values = {f.metadata["variable"]: getattr(self, f.name) for f in fields(self)}
        return {**{variable: "" if value is None else str(value) for variable, value in values.items()}, CONFIG: os.devnull}

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
        return KafkaCluster(self.bootstrap_servers, ClientSecurity.read(self.kafka_client_properties, os.environ, self.driver_java_options))

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
            return remote_folder("CHECKPOINT_URI", self.checkpoint_uri, self.endpoint_of(self.checkpoint_uri))
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
            return remote_folder("LAKE_URI", self.lake_uri, self.endpoint_of(self.lake_uri))
        return Path(self.lake_uri).absolute() if self.lake_uri else self.home.absolute() / "lake"

    def endpoint_of(self, uri: str) -> str:
        """The address at which the store of that URI is asked, if it is not the usual one."""
        return self.webhdfs_url if uri.startswith("hdfs:") else self.aws_endpoint_url

    @property
    def checkpoint_interval(self) -> str | None:
        """How often queries in Spark's real-time mode write a checkpoint; None if all run in micro-batches."""
        return None if self.real_time == kinds.OFF else self.real_time

    @property
    def uses_s3(self) -> bool:
        """Whether tables, checkpoints or files that queries read are in S3."""
        return any(uri.startswith("s3a:") for uri in (self.lake_uri, self.checkpoint_uri, self.nest_source.removeprefix("files:")))

    @property
    def is_lake_remote(self) -> bool:
        """Whether the tables are in an object store."""
        return "://" in self.lake_uri
