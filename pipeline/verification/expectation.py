"""The expected contents of a compacted topic, computed from the prefix as a batch."""

from datetime import UTC, datetime
from functools import cached_property

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract import durations
from contract.errors import StreamgaugeError
from contract.windows import window_of
from pipeline.checkpoint.contents import Checkpoint
from pipeline.verification.check import Check
from pipeline.verification.lateness import (
    IS_AHEAD,
    LATE,
    LATE_UNTIL,
    LATENESS,
    UNKNOWN,
    lateness_of,
    offset_ranges,
    watermarks_ahead,
    with_lateness,
    with_wrongly_late,
)
from pipeline.verification.outcome import Lateness
from pipeline.verification.prefix import Prefix


class Expectation:
    """The expected contents of a query's compacted topic. The decoded source rows are computed once and kept on disk until `close`."""

    def __init__(self, check: Check, prefix: Prefix) -> None:
        self._check, self._query, self._prefix = check, check.query, prefix
        self._delay = check.query.watermark or check.settings.watermark
        self._kept: DataFrame | None = None
        if self._query.event_time is not None:
            known = offset_ranges(prefix.first, prefix.batches, prefix.committed)
            rows = self._query.decoded(check.source.between(prefix.starts, prefix.planned_ends), check.schemas)
            self._kept = with_lateness(rows, self._query.event_time, known).persist(StorageLevel.DISK_ONLY)

    @cached_property
    def newest_cut_ms(self) -> int | None:
        """An upper bound of the event times of the lost records, in ms since 1970. 0 when nothing is lost, None when unknown.

        The watermark after a batch is at least the latest event time of the stream so far, minus its delay, minus the partition skew.
        """
        prefix, skew = self._prefix, self._query.skew or self._check.settings.partition_skew
        if not prefix.is_cut:
            return 0
        if self._query.real_time:  # there is no bound on how far an idle partition holds the watermark back
            return None
        cut = {which: start for which, start in prefix.starts.items() if start > prefix.first.get(which, 0)}
        batches = iter(prefix.batches)
        last = next((batch for batch in batches if all(batch.ends.get(which, 0) >= start for which, start in cut.items())), None)
        if last is None:
            return None
        after = next(batches, None)
        watermark_ms = after.watermark_ms if after else Checkpoint(self._check.place.folder).watermark_after(last.number)
        if watermark_ms is None:
            return None
        delay_and_skew = durations.seconds(self._delay, "watermark") + durations.seconds(skew, "STREAMGAUGE_PARTITION_SKEW")
        return watermark_ms + round(delay_and_skew * 1000)

    @cached_property
    def _flagged(self) -> DataFrame | None:
        """The usable rows with their lateness. None for a query without event time. Raises as `watermarks_ahead` does."""
        if self._kept is None or self._query.event_time is None:
            return None
        ahead = watermarks_ahead(self._kept, self._query.event_time, self.newest_cut_ms)
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
            return self._collected(self._check.result(self._prefix.starts, ends))
        counted = self._flagged.where(F.col(LATENESS) != LATE)
        rows = _plain(counted if ahead else counted.where(~F.col(IS_AHEAD)))
        final_ms = self._prefix.watermark_ms(self._prefix.planned if ahead else self._prefix.committed)
        found = self._collected(self._query.transformed(rows, final_ms if self._query.has_timers else None))
        if self._query.mode == "append":
            # In append mode, Spark writes a window once, after the watermark has passed its end. Not filtered by Spark, which would push the
            # condition below session windows, where it removes events before they join.
            final = datetime.fromtimestamp(final_ms / 1000, UTC)
            return {key: value for key, value in found.items() if (window := window_of(key)) and window.end <= final}
        return found

    def keys_of_unknown_lateness(self) -> set[bytes]:
        """The keys of rows that depend on records whose lateness is unknown. Raises StreamgaugeError for session windows."""
        if self._flagged is None:
            return set()
        if self._query.session_gap:
            msg = f"the journal lacks batches, so it is not known which of their rows came too late, and where sessions begin; `streamgauge reset {self._query.name}` recounts from the start"
            raise StreamgaugeError(msg)
        unknown = _plain(self._flagged.where(F.col(LATENESS) == UNKNOWN))
        until_ms = self._prefix.watermark_ms(self._prefix.planned) if self._query.has_timers else None
        return set(self._collected(self._query.transformed(unknown, until_ms)))

    def _collected(self, result: DataFrame) -> dict[bytes, bytes]:
        rows = self._query.sink.records(result).toLocalIterator(prefetchPartitions=True)  # type: ignore[attr-defined]
        values = {row.key.encode(): row.value for row in rows}
        return {key: value.encode() for key, value in values.items() if value is not None}


def _plain(flagged: DataFrame) -> DataFrame:
    return flagged.drop(LATENESS, LATE_UNTIL, IS_AHEAD)
