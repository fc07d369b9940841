"""What a query is. Queries are data; the runner starts them all the same way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointName
from pipeline.checkpoint.contents import Partition
from pipeline.formats.confluent_avro import Subject, WriterSchemas
from pipeline.running.watermarks import with_partition_watermarks
from pipeline.sinks.sink import Sink
from pipeline.sources.source import Source
from pipeline.sources.static_tables import StaticTable

OutputMode = Literal["append", "update", "complete"]


def unchanged(rows: DataFrame) -> DataFrame:
    """`rows`."""
    return rows


@dataclass(frozen=True)
class Query:
    """From a source, a topic or a folder of files, to a sink.

    The rows of `source` go through `decode`, a watermark on `event_time` if one is named, and `transform`, which is also handed the
    `static_tables`; all three are lazy and free of side effects, so a batch over the same records gives the same rows.

    decode: records (columns of sources.kafka.RECORD), and WriterSchemas if `subject` is named -> rows; it keeps `topic`, `partition` and `offset`
    when `event_time` is named.
    transform: rows, static tables -> result rows, as the sink takes them.
    subject: of the source's values, when they are Avro in the Confluent wire format.
    watermark: how late a row may be, e.g. "60 seconds"; None: as the settings say for all.
    version: part of the checkpoint's path; raise it when the state that the query keeps changes.
    event_key: columns of the rows, `event_time` among them, by which `transform` tells two events apart: rows that agree in them count once.
    growing: columns of the result that more records can only raise. Both are what `verify` goes by.
    trigger_seconds: a batch starts this long after the one before it began, or at once when that took longer.
    """

    name: str
    source: Source
    decode: Callable[..., DataFrame]
    sink: Sink
    mode: OutputMode
    transform: Callable[..., DataFrame] = unchanged
    subject: Subject | None = None
    event_time: str | None = None
    watermark: str | None = None
    event_key: tuple[str, ...] = ()
    growing: tuple[str, ...] = ()
    static_tables: tuple[StaticTable, ...] = ()
    trigger_seconds: float = 0
    version: int = 1

    @property
    def checkpoint_name(self) -> CheckpointName:
        """The name of its checkpoint, another one for each version and mode."""
        return CheckpointName(self.name, self.version, self.mode)

    def result(self, records: DataFrame, schemas: WriterSchemas | None = None) -> DataFrame:
        """The result rows of `records`. schemas: of the values, for a query with a subject."""
        return self.transformed(self.decoded(records, schemas))

    def streamed(
        self,
        records: DataFrame,
        settings: Settings,
        partitions: Sequence[Partition],
        branches: int | None = None,
        schemas: WriterSchemas | None = None,
    ) -> DataFrame:
        """The result rows of a stream of `records`, which has `partitions`: as `result`, and late by the watermark of the query or of `settings`.

        branches: how many sources the checkpoint is for, see `with_partition_watermarks`; None for a new one.
        """
        rows = self.decoded(records, schemas)
        if self.event_time is not None:
            delay, skew = self.watermark or settings.watermark, settings.partition_skew
            rows = with_partition_watermarks(rows, self.event_time, delay=delay, skew=skew, partitions=partitions, branches=branches)
        return self.transformed(rows)

    def decoded(self, records: DataFrame, schemas: WriterSchemas | None = None) -> DataFrame:
        """The first half of `result`: the rows of `records`."""
        return self.decode(records) if schemas is None else self.decode(records, schemas)

    def transformed(self, rows: DataFrame) -> DataFrame:
        """The second half of `result`: what becomes of `rows`."""
        return self.transform(rows, *(table.load(rows.sparkSession) for table in self.static_tables))
