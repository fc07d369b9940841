"""Lab 6: the table in a topic. Read workshop/06-the-table-in-a-topic/README.md."""

import json  # noqa: F401 - you will need it
from collections.abc import Sequence
from typing import Any


def result_key() -> tuple[str, ...]:
    """The columns that make the key of a row of nest-camera-stats, which has zip_code, window and count."""
    msg = "return the columns that tell two rows apart"
    raise NotImplementedError(msg)


def table(records: Sequence[tuple[bytes, bytes | None]]) -> dict[bytes, dict[str, Any]]:
    """The table that a topic holds: the last value of each key.

    records: key and value of each record, in the order of their offsets. A value is a row in JSON; None, a tombstone, deletes the key's row.
    """
    msg = "apply the records one after the other, and return the row of each key"
    raise NotImplementedError(msg)


def compacted(records: Sequence[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    """What compaction leaves of `records`: the last record of each key, tombstones too, in the order of their offsets."""
    msg = "return the last record of each key, in order"
    raise NotImplementedError(msg)
