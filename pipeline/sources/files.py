"""A folder of files as a source: Spark's file source finds each new file once, and its documents become records."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract.checkpoints.contents import Partition
from contract.topics import DEAD_LETTERS
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import asking, file_at
from pipeline.sources.documents import Line, lines_of
from pipeline.sources.kafka import RECORD, source_partitions

SCHEME = "files:"
PROBLEM = "problem"
"""The column of records from files that says why a file or line is not a document; null otherwise."""
NAMES = "*.{json,jsonl,ndjson,json.gz,jsonl.gz,ndjson.gz}"
"""Other files are ignored, and so are names that start with a dot or an underscore, which mark incomplete files."""

_SPARKS_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"
_DOCUMENTS_COLUMNS = f"topic string, timestamp timestamp, offset bigint, value binary, {PROBLEM} string"
_LIKE_A_PATTERN = re.compile(r"[\\?\[\]{}]")
"""Spark takes a path for a pattern, and finds nothing in a folder such as cameras[1], without these escaped. Of patterns, users have *."""
_FOR_GLOB = re.compile(r"[?\[]")
"""The same for Python's glob."""
_STARS = re.compile(r"[*]+")
"""To Spark, ** means no more than *. Python's glob refuses it beside other characters."""
_A_PATTERN = re.compile(r"[^/]*[*].*", re.DOTALL)
_VARIABLE = "STREAMGAUGE_NEST_SOURCE"
_BATCH_BYTES = 4 * 1024 * 1024
_FOREVER = "36500d"


@dataclass(frozen=True)
class Files:
    """The files in `folder` and its subfolders.

    folder: an absolute path, or a folder in an object store such as s3a://bucket/landing. A * stands for any characters of a name.

    Each document becomes a record: topic is `files:` and the file's path, partition is 0, offset is the line number from 1, timestamp and
    clock are the file's modification time, key is null. Column PROBLEM says why a file or line is not a document, and is null otherwise.
    """

    folder: str

    @classmethod
    def of(cls, text: str) -> Self:
        """The folder in a string such as files:/data/landing."""
        folder = text.removeprefix(SCHEME)
        if "://" in folder:
            return cls(folder)
        path = Path(folder)
        # Spark's listing of a link to a folder never ends.
        return cls(str(path.resolve() if path.is_symlink() else path.absolute()))

    @property
    def name(self) -> str:
        """The name in settings, reports and dead letters."""
        return topic_of(self.folder)

    def partitions(self, settings: Settings) -> list[Partition]:
        """A single partition, because the files have one order. Raises StreamgaugeError when the folder, or one in it, cannot be listed.

        Raises the errors of `source_partitions` too: results and dead letters go to Kafka, so a run also waits for Kafka. Raises
        StoreUnavailable when the object store does not answer.
        """
        source_partitions(settings, DEAD_LETTERS.name)
        folder = file_at(_VARIABLE, _A_PATTERN.sub("", self.folder), settings.endpoint_of(self.folder))
        try:
            with asking(folder):
                if isinstance(folder, Path):
                    next(folder.iterdir(), None)
                    _refuse_links(self.folder)
                else:
                    folder.fs.info(f"{folder.path}/_")  # answers without listing the objects
        except OSError as error:
            # A folder without objects is none, and may get some. The store has an error of its own for a bucket that does not exist.
            if isinstance(folder, Path) or error.__cause__ is not None:
                msg = f"the source folder {folder} cannot be read ({error.strerror or error}); create it, or set {_VARIABLE} to another one"
                raise StreamgaugeError(msg) from error
        return [(self.name, 0)]

    def ids(self, partitions: Sequence[Partition], settings: Settings) -> dict[str, str]:  # noqa: ARG002 - as a topic
        """The folder, which has no id but its name."""
        return {self.name: ""}

    def reset_notes(self, settings: Settings) -> list[str]:  # noqa: ARG002 - as a topic
        """Notes on what the next run reads."""
        return [f"the next run reads all files that are in {self.folder} then"]

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
        folder = _LIKE_A_PATTERN.sub(r"\\\g<0>", self.folder)
        if "://" in folder and "*" not in folder:
            folder += "/*"  # Spark refuses a folder that does not exist, as one without objects; of a pattern it waits for the first file
        files = spark.readStream.format("binaryFile").schema(_SPARKS_COLUMNS).options(**options).load(folder)
        # Selecting `content` would make Spark read the file, and an unreadable file would stop the stream.
        return _records(files.select("path", "modificationTime"), settings.endpoint_of(self.folder))


def _refuse_links(pattern: str) -> None:
    """Raises StreamgaugeError for a link to a folder: Spark's listing of it never ends."""
    for top in Path("/").glob(_STARS.sub("*", _FOR_GLOB.sub(r"[\g<0>]", pattern.lstrip("/")))):
        links = [top] if top.is_symlink() and top.is_dir() else []
        for folder, names, _ in os.walk(top):
            names[:] = [name for name in names if not name.startswith((".", "_"))]  # Spark ignores these
            links += [path for name in names if (path := Path(folder, name)).is_symlink()]
        if links:
            msg = f"{links[0]} is a link to a folder, which Spark cannot list: put that folder in its place, or set {_VARIABLE} to it"
            raise StreamgaugeError(msg)


def topic_of(path: str) -> str:
    """The `topic` of records from that file."""
    return f"{SCHEME}{path}"


def path_of(uri: str) -> str:
    """The path in a URI as Spark's binaryFile writes it, without percent-encoding: file:/a/b or file:///a/b. Other URIs are as they are."""
    return "/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


def _records(files: DataFrame, endpoint_url: str) -> DataFrame:
    def documents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for uri, modified in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                path = path_of(uri)
                for lines in _portions(lines_of(file_at(_VARIABLE, path, endpoint_url))):
                    yield _batch(lines, path, modified)

    same_for_all = {"key": F.lit(None).cast("binary"), "partition": F.lit(0), "clock": F.col("timestamp")}
    return files.mapInArrow(documents, _DOCUMENTS_COLUMNS).withColumns(same_for_all).select(*RECORD, PROBLEM)


def _portions(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """`lines` in order, in lists of about _BATCH_BYTES."""
    size = 0

    def number_of(line: Line) -> int:
        nonlocal size
        size += len(line.value)
        return size // _BATCH_BYTES

    return (list(portion) for _, portion in groupby(lines, number_of))


def _batch(lines: list[Line], path: str, modified: pa.Scalar) -> pa.RecordBatch:
    columns = {
        "topic": pa.repeat(topic_of(path), len(lines)),
        "timestamp": pa.repeat(modified, len(lines)),
        "offset": pa.array([line.number for line in lines], pa.int64()),
        "value": pa.array([line.value for line in lines], pa.binary()),
        PROBLEM: pa.array([line.problem for line in lines], pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)
