"""The rows of one result topic, as the continuous audit keeps them.

A row is settled when no record can change it any more. As long as the topic holds it as expected, only the expected row is kept. `unsettled` has
the last value of each other key.
"""

import pickle
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

from audit.audited import Row
from audit.checks.store import Store
from audit.verdicts.comparison import Found, Kind
from contract.windows import window_of

_SETTLED = pa.schema({"key": pa.binary(), "start": pa.timestamp("us"), "row": pa.binary()})
_FOUND = pa.schema({"key": pa.binary(), "found": pa.binary()})


class Settled(NamedTuple):
    """The expected row of a key that is settled. excuse: why the row is the one that was found, if that may differ from a recount."""

    row: Row
    excuse: Kind | None = None


class KeptRows:
    """The rows in tables of the store, whose names contain `name`."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._database = store, store.database
        self._settled, self._found = f"settled_{name}", f"found_{name}"

    def begin(self) -> None:
        self._database.execute(f'CREATE OR REPLACE TABLE {self._settled} (key BLOB, "start" TIMESTAMP, "row" BLOB)')
        self._database.execute(f"CREATE OR REPLACE TABLE {self._found} (key BLOB, found BLOB)")

    @property
    def unsettled(self) -> dict[bytes, Found | None]:
        """What the topic holds of keys whose rows are not settled, or not as expected: None for nothing."""
        rows = self._database.execute(f"FROM {self._found}").fetchall()
        return {key: pickle.loads(found) for key, found in rows}  # noqa: S301 - this program wrote it

    @unsettled.setter
    def unsettled(self, rows: Mapping[bytes, Found | None]) -> None:
        self._store.register("new_rows", _FOUND, list(rows), [pickle.dumps(row) for row in rows.values()])
        self._database.execute(f"CREATE OR REPLACE TABLE {self._found} AS FROM new_rows")

    @property
    def settled(self) -> int:
        (count,) = self._database.execute(f"SELECT count(*) FROM {self._settled}").fetchall()[0]
        return int(count)

    def settled_of(self, keys: Collection[bytes]) -> dict[bytes, Settled]:
        if not keys:
            return {}
        self._probe(keys)
        found = self._database.execute(
            f'SELECT key, "row" FROM {self._settled} SEMI JOIN probe USING (key) WHERE {self._range(keys)}'
        ).fetchall()
        return {key: pickle.loads(row) for key, row in found}  # noqa: S301 - this program wrote it

    def settle(self, rows: Mapping[bytes, Settled]) -> None:
        """Adds settled rows, of keys that have none."""
        starts = [window.start.replace(tzinfo=None) if (window := window_of(key)) else None for key in rows]
        self._store.register("new_rows", _SETTLED, list(rows), starts, [pickle.dumps(row) for row in rows.values()])
        self._database.execute(f"INSERT INTO {self._settled} FROM new_rows")

    def remove(self, keys: Collection[bytes]) -> None:
        if keys:
            self._probe(keys)
            self._database.execute(f"DELETE FROM {self._settled} WHERE {self._range(keys)} AND key IN (SELECT key FROM probe)")

    def _probe(self, keys: Iterable[bytes]) -> None:
        self._store.register("probe", pa.schema({"key": pa.binary()}), list(keys))

    def _range(self, keys: Collection[bytes]) -> str:
        """SQL: the windows of these keys, so that no others are looked at."""
        starts = [window.start.replace(tzinfo=None) for key in keys if (window := window_of(key))]
        return f"\"start\" BETWEEN TIMESTAMP '{min(starts)}' AND TIMESTAMP '{max(starts)}'" if len(starts) == len(keys) else "true"
