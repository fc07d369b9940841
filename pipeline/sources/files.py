"""A folder of files as a source: Spark's file source finds each new file once, and its documents become records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from contract.topics import DEAD_LETTERS
from pipeline.checkpoint.contents import Partition
from pipeline.sources.documents import Line, lines_of
from pipeline.sources.kafka import RECORD, source_partitions

if TYPE_CHECKING:
    from pipeline.checkpoint.use import CheckpointUse
    from pipeline.verification.taken import Taken

SCHEME = "files:"
PROBLEM = "problem"
NAMES = "*.{json,jsonl,ndjson,json.gz,jsonl.gz,ndjson.gz}"
"""Other files are ignored, and so are names that start with a dot or an underscore, which mark incomplete files."""

_SPARKS_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"
_RECORD_SCHEMA = f"key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, {PROBLEM} string"
_ARROW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        (PROBLEM, pa.string()),
    ]
)
_BATCH_BYTES = 4 * 1024 * 1024
_FOREVER = "36500d"


@dataclass(frozen=True)
class Files:
    """The files in `folder` and its subfolders.

    Each document becomes a record: topic is `files:` and the file's path, partition is 0, offset is the line number from 1, timestamp and
    clock are the file's modification time, key is null. Column PROBLEM says why a file or line is not a document, and is null otherwise.
    """

    folder: Path
    is_in_kafka: ClassVar[bool] = False

    @classmethod
    def of(cls, text: str) -> Self:
        """The folder in a string such as files:/data/landing."""
        return cls(Path(text.removeprefix(SCHEME)).absolute())

    @property
    def name(self) -> str:
        """The name in settings, reports and dead letters."""
        return topic_of(self.folder)

    def part(self, pattern: str | None, numbers: Sequence[int]) -> Self:
        """Raises StreamgaugeError: a folder has no topics and no partitions."""
        option = f"--topic-pattern {pattern}" if pattern else f"--partition {numbers[0]}"
        msg = f"{option} is for topics, but the query reads {self.name}; unset STREAMGAUGE_NEST_SOURCE, or leave out the option"
        raise StreamgaugeError(msg)

    def partitions(self, settings: Settings) -> list[Partition]:
        """A single partition, because the files have one order.

        Raises the errors of `source_partitions` too: results and dead letters go to Kafka, so a run also waits for Kafka.
        """
        source_partitions(settings, DEAD_LETTERS.name)
        self.check_folder()
        return [(self.name, 0)]

    def check(self, checkpoint: "CheckpointUse", partitions: Sequence[Partition], settings: Settings) -> None:  # noqa: ARG002 - as every source
        """Compares the folder's path."""
        checkpoint.check_files(self.name)

    def taken(self, place: CheckpointPlace, spark: SparkSession, settings: Settings) -> "Taken":  # noqa: ARG002 - as every source
        """The files in the log of Spark's file source."""
        from pipeline.verification.files import TakenFiles

        return TakenFiles(spark, self, place)

    def reset_notes(self, settings: Settings) -> list[str]:  # noqa: ARG002 - as every source
        """Notes on what the next run reads."""
        return [f"the next run reads all files that are in {self.folder} then"]

    def check_folder(self) -> None:
        """Raises StreamgaugeError when the folder does not exist or cannot be listed."""
        try:
            next(self.folder.iterdir(), None)
        except OSError as error:
            msg = f"the source folder {self.folder} cannot be read ({error.strerror}); create it, or set STREAMGAUGE_NEST_SOURCE to another one"
            raise StreamgaugeError(msg) from error

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of sources.kafka.RECORD, and PROBLEM."""
        options = {
            "pathGlobFilter": NAMES,
            "recursiveFileLookup": "true",
            "latestFirst": str(settings.latest_first).lower(),
            # By default, Spark never reads a file that is more than a week older than the newest one.
            "maxFileAge": _FOREVER,
        }
        if settings.max_files_per_trigger is not None:
            options["maxFilesPerTrigger"] = str(settings.max_files_per_trigger)
        found = spark.readStream.format("binaryFile").schema(_SPARKS_COLUMNS).options(**options).load(str(self.folder))
        # Selecting `content` would make Spark read the file, and an unreadable file would stop the stream.
        return _records(found.select("path", "modificationTime"))


def records_of(spark: SparkSession, modified_ms: dict[str, int]) -> DataFrame:
    """A batch of the same columns. modified_ms: the modification time of each file, ms since 1970, by path."""
    files = spark.createDataFrame(list(modified_ms.items()), "path string, modified_ms bigint")
    return _records(
        files.selectExpr("path", "timestamp_millis(modified_ms) AS modificationTime").repartition(spark.sparkContext.defaultParallelism)
    )


def topic_of(path: Path | str) -> str:
    """The `topic` of records from that file."""
    return f"{SCHEME}{path}"


def path_of(uri: str) -> Path:
    """The path in a file URI as Spark's binaryFile writes it, without percent-encoding: file:/a/b or file:///a/b."""
    return Path("/" + uri.removeprefix("file:").lstrip("/"))


def _records(files: DataFrame) -> DataFrame:
    return files.mapInArrow(_documents, _RECORD_SCHEMA).withColumn("clock", F.col("timestamp")).select(*RECORD, PROBLEM)


def _documents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for uri, modified in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            path = path_of(uri)
            for lines in _portions(lines_of(path)):
                yield _batch(lines, path, modified)


def _portions(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """`lines` in order, in lists of about _BATCH_BYTES."""
    portion: list[Line] = []
    size = 0
    for line in lines:
        portion.append(line)
        size += len(line.value)
        if size >= _BATCH_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _batch(lines: list[Line], path: Path, modified: pa.Scalar) -> pa.RecordBatch:
    count = len(lines)
    columns = [
        pa.nulls(count, pa.binary()),
        pa.array([line.value for line in lines], pa.binary()),
        pa.repeat(topic_of(path), count),
        pa.repeat(pa.scalar(0, pa.int32()), count),
        pa.array([line.number for line in lines], pa.int64()),
        pa.repeat(modified, count).cast(pa.timestamp("us", tz="UTC")),
        pa.array([line.problem for line in lines], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)
