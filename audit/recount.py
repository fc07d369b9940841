"""The recount: facts from the records of a topic, and tables from those facts that were in time. One DuckDB connection."""

import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from audit import lateness
from audit.audited import Facts, Row, Table, common_pattern
from audit.checkpoints import Stretch
from audit.documents import may_hold
from audit.spark_texts import exact_text_of, text_of
from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.static_tables import files_of, static_tables

MEMORY_LIMIT = "700MB"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DuckDB's timestamps, which are UTC here, have no time zone


def opened(
    spill: Path | None = None, file: Path | None = None, limit: str = MEMORY_LIMIT, settings: Settings | None = None
) -> duckdb.DuckDBPyConnection:
    """A database in memory or in `file`, with the macros, and the static tables under the names of their files in `data/`.

    spill: the folder for what is more than `limit`. settings: those that may name other files.
    """
    is_new = file is None or not file.exists()
    database = duckdb.connect(
        file or ":memory:", config={"memory_limit": limit, **({} if spill is None else {"temp_directory": str(spill)})}
    )
    database.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
    for function in (text_of, exact_text_of):
        database.create_function(function.__name__, function)
    if not is_new:
        return database
    database.execute((Path(__file__).parent / "macros.sql").read_text())
    for table, path in static_tables().items():
        quoted = ", ".join("'" + str(one).replace("'", "''") + "'" for one in (files_of(table, settings) if settings else [path]))
        read = f"read_csv([{quoted}], header = true, all_varchar = true, union_by_name = true, nullstr = '\\0')"
        database.execute(f"CREATE TABLE {table} AS FROM {read}")
    return database


class Recount:
    """Facts of records, and the tables that are made of them. Use it from one thread."""

    def __init__(self, database: duckdb.DuckDBPyConnection | None = None) -> None:
        self.database = database or opened()

    def load(self, facts: Iterable[Facts], records: Iterable[pa.Table]) -> None:
        """Adds the facts of all records, of one table after the other; the next is read meanwhile."""
        by_name = {one.name: one for one in facts}
        formats, common = {(one.documents, one.only) for one in by_name.values()}, common_pattern(by_name.values())
        by_format = {of: [one for one in by_name.values() if (one.documents, one.only) == of] for of in formats}
        with _without_collector(), ThreadPoolExecutor(1) as worker:
            pending: Future[None] | None = None
            for table in records:
                read = {of_format: of_format(table) for of_format in {of_format for of_format, _ in formats}}
                documents = [
                    (read[of_format] if only is common else _holding(read[of_format], only), chosen)
                    for (of_format, only), chosen in by_format.items()
                ]
                if pending is not None:
                    pending.result()
                pending = worker.submit(self._add, documents)
            if pending is not None:
                pending.result()

    def judge(self, table: Table, stretches: Sequence[Stretch], newest_cut_ms: int | None, since_ms: int = 0) -> None:
        """Tells of each fact of `table` whether it was too late. Facts outside `stretches` are left out.

        newest_cut_ms: an upper bound of the event times of the records that the source has lost; 0: it has lost none, None: unknown.
        since_ms: the event time before which facts do not matter, and may be left out.
        Raises StreamgaugeError when a watermark is ahead of all facts that are left, and lost records may explain it.
        """
        rows = [
            {
                **asdict(one),
                "late_until": timedelta(milliseconds=one.late_until_ms) + _EPOCH,
                "in_time_after": timedelta(milliseconds=one.in_time_after_ms) + _EPOCH,
            }
            for one in stretches
        ]
        self.database.register("stretches", pa.Table.from_pylist(rows, lateness.STRETCHES))
        names = {"facts": table.facts.name, "time": table.event_time}
        self.database.execute(lateness.JUDGED.format(**names))
        ahead = self.database.execute(lateness.WATERMARKS_AHEAD.format(**names, since=_timestamp(since_ms))).fetchall()
        cut_until = None if newest_cut_ms is None else timedelta(milliseconds=newest_cut_ms) + _EPOCH
        if any(is_beyond_all and (cut_until is None or late_until <= cut_until) for late_until, is_beyond_all in ahead):
            msg = "Kafka has deleted the records that moved the watermark, so it is not known whether the dropped rows came too late; `streamgauge reset` recounts what is left"
            raise StreamgaugeError(msg)
        if moved := [late_until for late_until, _ in ahead if cut_until is not None and late_until > cut_until]:
            listed = ", ".join(f"TIMESTAMP '{late_until}'" for late_until in moved)
            self.database.execute(lateness.WRONGLY_JUDGED.format(ahead=listed, delay=table.watermark, **names))

    def written(
        self, table: Table, until_ms: int, condition: str = "true", noted: dict[Any, Any] | None = None
    ) -> dict[bytes, list[Row | None]]:
        """All rows of `table`, by key, in the order in which they are written, of the facts of the last `judge` that meet the condition.

        None is a deletion. until_ms: the watermark up to which windows are final, and timers have fired. noted: see Table.fold.
        """
        key = ", ".join(table.distinct or table.event_key)
        self.database.execute(lateness.COUNTED.format(key=key, condition=condition))
        rows: Iterable[Row] = self._rows(table, until_ms)
        if table.mode == "append":
            until = timedelta(milliseconds=until_ms) + _EPOCH
            rows = [row for row in rows if _end(row) <= until]
        if table.fold is not None:
            rows = table.fold(list(rows), until_ms, {} if noted is None else noted)
        found: dict[bytes, list[Row | None]] = {}
        for row in rows:
            is_deletion = row.keys() == set(table.key)
            own = {name: value for name, value in row.items() if name != "ends" and (not table.value or name in table.value)}
            found.setdefault(canonical_key(row, table.key), []).append(None if is_deletion else own)
        return found

    def with_facts(self, table: Table, until_ms: int, condition: str, view: str = lateness.COUNTED) -> list[Row]:
        """The rows of a table's SQL, each with the facts that it is made of: their numbers in `judged`. view: makes `counted`."""
        self.database.execute(view.format(key=", ".join(table.distinct or table.event_key), condition=condition))
        return self._rows(table, until_ms, ", list(fact) AS facts")

    def _rows(self, table: Table, until_ms: int, facts: str = "") -> list[Row]:
        sql = table.sql.format(**table.parameters, until=_timestamp(until_ms), facts=facts)
        rows: list[Row] = self.database.sql(sql).to_arrow_table().to_pylist()
        return rows

    def totals(self, table: Table, condition: str = "true") -> Mapping[str, int]:
        """How many rows and events of the committed batches there were that meet the condition, and were late."""
        sql = lateness.TOTALS.format(key=", ".join(table.event_key), condition=f"{condition} AND {table.counts}")
        (totals,) = self.database.sql(sql).to_arrow_table().to_pylist()
        return totals

    # In the transaction of the connection, if there is one: nothing else uses it meanwhile.
    def _add(self, facts: Sequence[tuple[pa.Table, Sequence[Facts]]]) -> None:
        for documents, chosen in facts:
            self.database.register("documents", documents)
            steps = {name: sql for one in chosen for name, sql in one.steps.items()}
            for name, sql in steps.items():
                self.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
            for one in chosen:
                sql = one.sql.format(**one.parameters)
                is_there = self.database.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = ?", [one.name.strip('"')])
                is_new = is_there.fetchall() == [(0,)]  # CREATE TABLE IF NOT EXISTS would plan the query also for nothing
                self.database.execute(f"{f'CREATE TABLE {one.name} AS' if is_new else f'INSERT INTO {one.name}'} {sql}")
            for name in steps:  # their memory is needed no longer
                self.database.execute(f"DROP TABLE {name}")
            self.database.unregister("documents")


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keeps Python's garbage collector from visiting the records again and again. None of them refers to itself."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _holding(records: pa.Table, only: re.Pattern[bytes] | None) -> pa.Table:
    return records if only is None else records.filter(pa.array([may_hold(one, only) for one in records["value"].to_pylist()], pa.bool_()))


def _timestamp(time_ms: int) -> str:
    """SQL: a moment in ms since 1970."""
    return f"TIMESTAMP '{timedelta(milliseconds=time_ms) + _EPOCH}'"


def _end(row: Row) -> datetime:
    end: datetime = row["ends"] if "ends" in row else datetime.fromisoformat(row["window"]["end"]).replace(tzinfo=None)
    return end


def canonical_key(row: Row, key: Sequence[str]) -> bytes:
    """The key of a row, as the topic has it: JSON with sorted names."""
    text = json.dumps({name: row[name] for name in key}, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return re.sub(r"\\\\|\\u00..", lambda found: found.group()[:2] + found.group()[2:].upper(), text).encode()
