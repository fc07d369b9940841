"""Fewer files for readers of an archive: small Parquet files of one folder become one, and Spark's log names that one instead.

The switch is one rename, of the log's newest summary (`_spark_metadata/N.compact`): who reads by the log has all the old files, or all the new.
The new files lie in folders `_compacted`, under names that do not end in `.parquet`: who lists the folder does not see them. The old files stay
where they are, for those readers: several files cannot be replaced by one in one step that a listing could not see half of.

Killed at any moment, it leaves nothing but files that nobody reads; the next round removes them.
"""

import json
import math
import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import SparkSession

from pipeline.spark_log import Entry, SparkLog, entries, path_of
from streamgauge.errors import StreamgaugeError
from streamgauge.removal import remove

TARGET_BYTES = 128_000_000
SMALL_BYTES = TARGET_BYTES // 2
HIDDEN, ENDING = "_compacted", ".compacted"


def log_of(folder: Path) -> SparkLog:
    """Spark's log of the files of the archive in `folder`, whose entries have size, and modificationTime (ms)."""
    return SparkLog(folder / "_spark_metadata")


def compact(folder: Path, spark: SparkSession, scratch: Path) -> int:
    """Compacts the files that the newest summary names, and returns how many were replaced. The query that writes the archive must not run.

    scratch: a folder on the same file system, which is deleted. Raises StreamgaugeError when rows would be lost.
    """
    remove(scratch)
    log = log_of(folder)
    summary = log.newest_summary
    if summary is None:
        return 0
    named = entries(summary)
    replaced: list[Entry] = []
    new: list[Entry] = []
    for number, (base, small) in enumerate(_small_files(named).items()):
        new += _rewritten(base, small, spark, scratch / str(number))
        replaced += small
    if replaced:
        gone = {entry["path"] for entry in replaced}
        for entry in replaced:
            if _is_hidden(path_of(entry)):
                os.utime(path_of(entry))  # from now on counts how long readers that began before may need it
        _switch(Path(str(summary)), [*(entry for entry in named if entry["path"] not in gone), *new], scratch)
    remove(scratch)
    return len(replaced)


def clear(folder: Path, retain_seconds: float) -> int:
    """Deletes compacted files that the log does not name, or no longer for that long; returns how many. Files of the query are left alone."""
    named = {path_of(entry) for entry in log_of(folder).live()}
    oldest = time.time() - retain_seconds
    unused = [path for path in folder.rglob(f"{HIDDEN}/*{ENDING}") if path not in named and path.stat().st_mtime < oldest]
    for path in unused:
        remove(path)
    return len(unused)


def _small_files(named: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The files that are worth compacting, by the URI of the folder that their rows belong to.

    Files that are gone stay named: a person may have deleted an old day, and `streamgauge verify` is to tell.
    """
    by_base: dict[str, list[Entry]] = {}
    for entry in named:
        if entry["size"] < SMALL_BYTES and path_of(entry).exists():
            by_base.setdefault(entry["path"].rpartition("/")[0].removesuffix(f"/{HIDDEN}"), []).append(entry)
    return {base: small for base, small in by_base.items() if len(small) > math.ceil(sum(entry["size"] for entry in small) / TARGET_BYTES)}


def _rewritten(base: str, small: Sequence[Entry], spark: SparkSession, scratch: Path) -> list[Entry]:
    """Writes the rows of `small` into as few files as they need, and returns how the log is to name them."""
    paths = [path_of(entry) for entry in small]
    count = math.ceil(sum(entry["size"] for entry in small) / TARGET_BYTES)
    rows = spark.read.option("mergeSchema", "true").parquet(*map(str, paths))
    rows.coalesce(count).write.parquet(str(scratch))
    written = sorted(scratch.glob("*.parquet"))
    was, is_now = _rows(paths), _rows(written)
    if was != is_now:
        msg = f"{len(paths)} files of {paths[0].parent} hold {was} rows, and {is_now} when written anew; nothing was changed: is the disk sound?"
        raise StreamgaugeError(msg)
    folder = path_of({"path": base}) / HIDDEN
    folder.mkdir(exist_ok=True)
    return [_placed(path, folder, base, small[0]) for path in written]


def _placed(written: Path, folder: Path, base: str, like: Entry) -> Entry:
    name = f"{uuid.uuid4().hex}{ENDING}"
    _to_disk(written)
    written.replace(folder / name)
    _to_disk(folder)
    status = (folder / name).stat()
    return {**like, "path": f"{base}/{HIDDEN}/{name}", "size": status.st_size, "modificationTime": round(status.st_mtime * 1000)}


def _switch(summary: Path, named: Sequence[Entry], scratch: Path) -> None:
    anew = scratch / "summary"
    version = summary.read_text().splitlines()[0]
    anew.write_text("\n".join([version, *(json.dumps(entry, separators=(",", ":")) for entry in named)]))
    _to_disk(anew)
    # Hadoop's checksum of what was there before would have the new one refused; without one it is not asked for.
    summary.with_name(f".{summary.name}.crc").unlink(missing_ok=True)
    anew.replace(summary)
    _to_disk(summary.parent)


def _is_hidden(path: Path) -> bool:
    return path.parent.name == HIDDEN


def _rows(paths: Sequence[Path]) -> int:
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in paths)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
