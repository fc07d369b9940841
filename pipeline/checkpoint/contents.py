"""What Spark writes into a query's checkpoint: which records each micro-batch takes, by which watermark, and which batches are done.

`offsets/N` is written when batch N is planned, before it writes a row; `commits/N` when all of its rows are in the sink. A batch that
was planned and not committed is run again as it was planned. Both folders keep the last hundred batches or so.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from contract.errors import StreamgaugeError
from contract.storage.paths import StoragePath, names_in, text_of

Partition = tuple[str, int]
"""Topic and number."""
Offsets = Mapping[Partition, int]
FILES: Partition = ("files", 0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned micro-batch.

    ends: the offset behind the last record of each partition that it takes; of files, how many entries (taken.TakenFile) have been taken, as of
    one partition, FILES. watermark_ms: since 1970, by which it drops what it remembers; the batch after it drops late rows by the same one.
    """

    number: int
    ends: Offsets
    watermark_ms: int


class Checkpoint:
    """Reads the checkpoint in `folder`, also while the query writes it: every file there appears whole, and never changes.

    In an object store that does not answer, each question raises StoreAway.
    """

    def __init__(self, folder: StoragePath) -> None:
        self.folder = folder

    @property
    def query_id(self) -> str | None:
        """Spark's id of the query, a new one for each new checkpoint; None before the query has started."""
        text = text_of(self.folder / "metadata")
        return None if text is None else str(_parsed(text, self.folder / "metadata")["id"])

    @property
    def planned(self) -> list[int]:
        """The numbers of the batches of which the plan is still there, in order."""
        return _numbers(self.folder / "offsets")

    @property
    def last_committed(self) -> int:
        """The number of the last batch that is done; -1 before the first."""
        return max(_numbers(self.folder / "commits"), default=-1)

    def batch(self, number: int) -> Batch | None:
        """The plan of a batch; None when there is none, or it is no longer there."""
        path = self.folder / "offsets" / str(number)
        text = text_of(path) if number >= 0 else None
        if text is None:
            return None
        # A version, metadata, and a line a source: the branches of one source are so many sources to Spark, all with the same offsets.
        _, metadata, *sources = _lines(text, path)
        ends: dict[Partition, int] = {}
        for source in sources:
            ends.update({} if source == "-" else offsets_of(_parsed(source, path)))
        return Batch(number, ends, int(_parsed(metadata, path)["batchWatermarkMs"]))

    @property
    def sources(self) -> int | None:
        """How many sources the query has to Spark, which no later run may change; None before the first batch is planned."""
        text = text_of(self.folder / "offsets" / str(planned[-1])) if (planned := self.planned) else None
        return None if text is None else max(len(text.splitlines()) - 2, 1)

    def first_offsets(self) -> Offsets:
        """Where the query has started on each partition that there was then; on others it started at 0."""
        path = self.folder / "sources" / "0" / "0"
        text = text_of(path)
        return {} if text is None else offsets_of(_parsed(_lines(text, path)[1], path))

    def watermark_after(self, number: int) -> int | None:
        """The watermark, in ms, that batch `number` left behind; None when its commit is not there, or does not say."""
        path = self.folder / "commits" / str(number)
        text = text_of(path)
        return None if text is None else _parsed(_lines(text, path)[1], path).get("nextBatchWatermarkMs")


def offsets_of(by_topic: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    """Offsets by partition, of Kafka offsets as Spark's JSON nests them: {"topic": {"0": 17}}; of files, {"logOffset": 3}: the last entry."""
    if isinstance(entry := by_topic.get("logOffset"), int):
        return {FILES: entry + 1}
    return {(topic, int(number)): offset for topic, numbers in by_topic.items() for number, offset in numbers.items()}


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """The batch that a progress is of, as Spark reports it in JSON when the batch is done."""
    ends: dict[Partition, int] = {}
    for source in progress["sources"]:
        ends.update(offsets_of(source["endOffset"] or {}))
    watermark = datetime.fromisoformat(progress["eventTime"]["watermark"])
    return Batch(progress["batchId"], ends, (watermark - _EPOCH) // timedelta(milliseconds=1))


def nested(offsets: Offsets) -> dict[str, dict[str, int]]:
    """The inverse of `offsets_of`."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(number)] = offset
    return by_topic


def _numbers(folder: StoragePath) -> list[int]:
    return sorted(int(name) for name in names_in(folder) if name.isdigit())


def _lines(text: str, path: StoragePath) -> list[str]:
    lines = text.splitlines()
    if len(lines) < 2:  # noqa: PLR2004 - a version, and what the file tells
        raise _damaged(path, f"it has {len(text)} characters")
    return lines


def _parsed(text: str, path: StoragePath) -> Any:  # noqa: ANN401 - whatever JSON there is
    try:
        return json.loads(text)
    except ValueError as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: StoragePath, why: str) -> StreamgaugeError:
    msg = f"{path} is not as Spark writes it ({why}); restore the checkpoint from a copy, or recount from the start (`streamgauge reset` the query)"
    return StreamgaugeError(msg)
