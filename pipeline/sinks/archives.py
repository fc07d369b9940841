"""Archives: append-only folders of Parquet files, and append-only Delta tables."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.checkpoints.contents import last_entry
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath
from pipeline.sinks.sink import Deletion, Sink, deletion_of_table
from pipeline.sources.kafka import ORIGIN

_NTH = "_nth"


@dataclass(frozen=True)
class Archive(Sink):
    """An append-only folder in the lake, with exactly-once rows, partitioned by `partition_by`.

    Columns topic, partition and offset, each prefixed with `origin_prefix`, identify the record that a row comes from.
    event_key: what identifies an event, in SQL; if empty, all columns but those of the record. is_event: which rows report one, in SQL.
    """

    path: str
    partition_by: str
    origin_prefix: str = ""
    event_key: tuple[str, ...] = ()
    is_event: str = "true"

    @property
    def place(self) -> str:
        return f"lake/{self.path}"

    def folder(self, settings: Settings) -> StoragePath:
        return settings.lake / self.path

    def distinct(self, rows: DataFrame) -> DataFrame:
        """The events in `rows` of the archive, each once, however often it was sent: the row of its first record."""
        origin = [f"{self.origin_prefix}{name}" for name in ORIGIN]
        key = [F.expr(part) for part in self.event_key] or [rows[name] for name in rows.columns if name not in origin]
        nth = F.row_number().over(Window.partitionBy(*key).orderBy(*origin))
        return rows.where(self.is_event).withColumn(_NTH, nth).where(F.col(_NTH) == 1).drop(_NTH)

    def deletions(self, settings: Settings) -> list[Deletion]:
        return deletion_of_table(self.folder(settings))

    def _writer(self, rows: DataFrame, settings: Settings, form: str) -> DataStreamWriter:
        return rows.writeStream.format(form).option("path", str(self.folder(settings))).partitionBy(self.partition_by)


class NotOnDisk(StreamgaugeError):  # noqa: N818 - it names what is wrong
    """A Parquet archive is to be in an object store."""

    def __init__(self, folder: StoragePath) -> None:
        super().__init__(
            f"the Parquet form of an archive is for folders on disk, and {folder} is not; run its Delta form instead: the query of the same "
            "name with -delta, which `streamgauge run` runs by default"
        )


@dataclass(frozen=True)
class ParquetArchive(Archive):
    """Parquet files. Readers get exactly-once rows only if they use Spark's metadata log."""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of all columns. Raises StreamgaugeError for a lake in an object store."""
        if settings.is_lake_remote:
            raise NotOnDisk(self.folder(settings))
        return self._writer(rows, settings, "parquet")

    def last_batch(self, spark: SparkSession, settings: Settings, query_id: str | None) -> int:  # noqa: ARG002 - the log names no query
        """The newest entry of Spark's metadata log. Raises StreamgaugeError when the log is damaged."""
        return last_entry(self.folder(settings) / "_spark_metadata", lines=1)


@dataclass(frozen=True)
class DeltaArchive(Archive):
    """A Delta table. Every Delta reader gets exactly-once rows."""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of all columns. Adds columns that the table lacks, for newer versions of the code."""
        return self._writer(rows, settings, "delta").option("mergeSchema", "true")

    def last_batch(self, spark: SparkSession, settings: Settings, query_id: str | None) -> int:
        """The query's last transaction in the table; the last one of another query if there is none."""
        delta = spark._jvm.org.apache.spark.sql.delta  # type: ignore[union-attr]
        transactions = delta.DeltaLog.forTableWithSnapshot(spark._jsparkSession, str(self.folder(settings)))._2().setTransactions()
        batches = {transactions.apply(number).appId(): transactions.apply(number).version() for number in range(transactions.size())}
        return batches.get(query_id, max(batches.values(), default=-1))

    def delta_table(self, settings: Settings) -> StoragePath:
        return self.folder(settings)
