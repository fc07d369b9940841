"""The expected contents of a compacted topic, computed from the prefix as a batch."""

from collections.abc import Callable
from functools import cached_property

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipeline.checkpoint.contents import Offsets
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.query import Query
from pipeline.sinks.topics import keyed_rows
from pipeline.verification.lateness import (
    IS_AHEAD,
    LATE,
    LATE_UNTIL,
    LATENESS,
    UNTOLD,
    lateness_of,
    stretches,
    watermarks_ahead,
    with_lateness,
    with_wrongly_late,
)
from pipeline.verification.outcome import Lateness
from pipeline.verification.prefix import Prefix


class Expectation:
    """The expected contents of a compacted topic. The decoded source rows are computed once and kept on disk until `close`.

    delay: how late a row may be, e.g. "10 minutes". cut_until_ms: see prefix.newest_cut_ms.
    """

    def __init__(
        self,
        query: Query,
        records: Callable[[Offsets, Offsets], DataFrame],
        prefix: Prefix,
        schemas: WriterSchemas | None,
        *,
        delay: str,
        cut_until_ms: int | None,
    ) -> None:
        self._query, self._records, self._prefix = query, records, prefix
        self._schemas, self._delay, self._cut_until_ms = schemas, delay, cut_until_ms
        self._kept: DataFrame | None = None
        if query.event_time is not None:
            known = stretches(prefix.first, prefix.batches, prefix.committed)
            rows = query.decoded(self._records(prefix.starts, prefix.planned_ends), schemas)
            self._kept = with_lateness(rows, query.event_time, known).persist(StorageLevel.DISK_ONLY)

    @cached_property
    def _flagged(self) -> DataFrame | None:
        """The usable rows with their lateness. None for a query without event time. Raises as `watermarks_ahead` does."""
        if self._kept is None or self._query.event_time is None:
            return None
        ahead = watermarks_ahead(self._kept, self._query.event_time, self._cut_until_ms)
        return with_wrongly_late(self._kept, self._query.event_time, ahead, self._delay) if ahead else self._kept

    def close(self) -> None:
        """Deletes the rows kept on disk."""
        if self._kept is not None:
            self._kept.unpersist()

    def lateness(self) -> Lateness | None:
        """The lateness counts of the committed rows. None for a query without event time."""
        return None if self._flagged is None else lateness_of(self._flagged, self._query.event_key)

    def rows(self, *, ahead: bool = False) -> dict[bytes, bytes]:
        """Expected values by key, as JSON, after the committed batch, or with `ahead` after the planned one."""
        if self._flagged is None:
            ends = self._prefix.planned_ends if ahead else self._prefix.ends
            return self._collected(self._query.result(self._records(self._prefix.starts, ends), self._schemas))
        counted = self._flagged.where(F.col(LATENESS) != LATE)
        result = self._query.transformed(_plain(counted if ahead else counted.where(~F.col(IS_AHEAD))))
        if self._query.mode == "append":
            # In append mode, Spark writes a window once, after the watermark has passed its end.
            final_ms = self._prefix.planned_watermark_ms if ahead else self._prefix.watermark_ms
            result = result.where(F.col("window.end") <= F.timestamp_millis(F.lit(final_ms)))
        return self._collected(result)

    def untold_keys(self) -> set[bytes]:
        """The keys of rows that depend on records whose lateness is unknown."""
        if self._flagged is None:
            return set()
        untold = self._flagged.where(F.col(LATENESS) == UNTOLD)
        return set(self._collected(self._query.transformed(_plain(untold))))

    def _collected(self, result: DataFrame) -> dict[bytes, bytes]:
        rows = keyed_rows(result, self._query.sink.key).toLocalIterator(prefetchPartitions=True)  # type: ignore[attr-defined]
        return {row.key.encode(): row.value.encode() for row in rows}


def _plain(flagged: DataFrame) -> DataFrame:
    return flagged.drop(LATENESS, LATE_UNTIL, IS_AHEAD)
