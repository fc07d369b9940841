"""What a query is. Queries are data; the runner starts them all the same way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from pipeline.sinks import Sink
from pipeline.static_tables import StaticTable
from streamgauge.topics import Topic

OutputMode = Literal["append", "update", "complete"]


@dataclass(frozen=True)
class Query:
    """From a source topic to a sink.

    The rows of `source` go through `decode`, a watermark on `event_time` if one is named, and `transform`, which is also handed the
    `static_tables`; all three are lazy and free of side effects, so a batch over the same records gives the same rows.

    decode: records (columns of sources.RECORD) -> rows; it keeps `topic` and `partition` when `event_time` is named.
    transform: rows, static tables -> result rows, as the sink takes them.
    version: part of the checkpoint's path; raise it when the state that the query keeps changes.
    trigger_seconds: a batch starts this long after the one before it began, or at once when that took longer.
    """

    name: str
    source: Topic
    decode: Callable[[DataFrame], DataFrame]
    transform: Callable[..., DataFrame]
    sink: Sink
    mode: OutputMode
    event_time: str | None = None
    static_tables: tuple[StaticTable, ...] = ()
    trigger_seconds: float = 0
    version: int = 1

    def result(self, records: DataFrame, watermarked: Callable[[DataFrame, str], DataFrame] = lambda rows, _: rows) -> DataFrame:
        """The result rows of `records`. `watermarked` adds the watermark on the named column; a batch needs none."""
        rows = self.decode(records)
        if self.event_time is not None:
            rows = watermarked(rows, self.event_time)
        return self.transform(rows, *(table.load(records.sparkSession) for table in self.static_tables))
