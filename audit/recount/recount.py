"""The recount: facts from the records of a topic, and tables from those facts that were in time. One DuckDB connection."""

import gc
import json
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from audit.audited import Facts, Row, Table
from audit.reading.checkpoints import Stretch
from audit.reading.records import AT_ONCE
from audit.recount import lateness
from audit.recount.static_tables import create_static_tables
from audit.values.choices import Choice
from audit.values.spark_texts import exact_text_of, text_of
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

T = TypeVar("T")
_Format = tuple[Callable[[pa.Table], pa.Table], Choice | None]
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
    create_static_tables(database, settings)
    return database


class Recount:
    """Facts of records, and the tables that are made of them. Use it from one thread."""

    def __init__(self, database: duckdb.DuckDBPyConnection | None = None) -> None:
        self.database = database or opened()

    def load(self, facts: Iterable[Facts], records: Iterable[pa.Table]) -> None:
        """Adds the facts of all records; the next ones are read meanwhile."""
        by_format = formats_of({group.name: group for group in facts}.values())
        with (
            _without_collector(),
            closing(self.database.cursor()) as beside,
            closing(_ahead(iter(records))) as tables,
            closing(_ahead(_read(table, by_format, beside) for table in tables)) as read,
            closing(_ahead(self._added(read, by_format))) as added,  # in the main thread, DuckDB has its own error for Ctrl-C
        ):
            for _ in added:
                pass

    def judge(self, table: Table, stretches: Sequence[Stretch], newest_lost_ms: int | None, since_ms: int = 0) -> None:
        """Marks each fact of `table` as in time or too late, in table `judged`. Leaves out facts outside `stretches`.

        newest_lost_ms: an upper bound of the event times of the records that the source has lost; 0: it has lost none, None: unknown.
        since_ms: the event time before which facts do not matter, and may be left out.
        Raises StreamgaugeError when a watermark is ahead of all facts that are left, and lost records may explain it.
        """
        rows = [
            {
                **asdict(stretch),
                "late_until": timedelta(milliseconds=stretch.late_until_ms) + _EPOCH,
                "in_time_after": timedelta(milliseconds=stretch.in_time_after_ms) + _EPOCH,
            }
            for stretch in stretches
        ]
        self.database.register("stretches", pa.Table.from_pylist(rows, lateness.STRETCHES))
        names = {"facts": table.facts.name, "time": table.event_time}
        self.database.execute(lateness.JUDGED.format(**names))
        ahead = self.database.execute(lateness.WATERMARKS_AHEAD.format(**names, since=_timestamp(since_ms))).fetchall()
        cut_until = None if newest_lost_ms is None else timedelta(milliseconds=newest_lost_ms) + _EPOCH
        if any(is_beyond_all and (cut_until is None or late_until <= cut_until) for late_until, is_beyond_all in ahead):
            msg = "Kafka has deleted the records that moved the watermark, so it is not known whether the dropped rows came too late; `streamgauge reset` recounts what is left"
            raise StreamgaugeError(msg)
        if moved := [late_until for late_until, _ in ahead if cut_until is not None and late_until > cut_until]:
            listed = ", ".join(f"TIMESTAMP '{late_until}'" for late_until in moved)
            self.database.execute(lateness.WRONGLY_JUDGED.format(ahead=listed, delay=table.watermark, **names))

    def written(
        self, table: Table, until_ms: int, condition: str = "true", fold_state: dict[Any, Any] | None = None
    ) -> dict[bytes, list[Row | None]]:
        """All rows of `table`, by key, in the order in which they are written, of the facts of the last `judge` that meet the condition.

        None is a deletion. until_ms: the watermark up to which windows are final, and timers have fired. fold_state: see Table.fold.
        """
        key = ", ".join(table.distinct or table.event_key)
        self.database.execute(lateness.COUNTED.format(key=key, condition=condition))
        rows: Iterable[Row] = self._rows(table, until_ms)
        if table.mode == "append":
            until = timedelta(milliseconds=until_ms) + _EPOCH
            rows = [row for row in rows if _end(row) <= until]
        if table.fold is not None:
            rows = table.fold(list(rows), until_ms, {} if fold_state is None else fold_state)
        by_key: dict[bytes, list[Row | None]] = {}
        for row in rows:
            is_deletion = row.keys() == set(table.key)
            value = {name: value for name, value in row.items() if name != "ends" and (not table.value or name in table.value)}
            by_key.setdefault(canonical_key(row, table.key), []).append(None if is_deletion else value)
        return by_key

    def contested(self, table: Table, until_ms: int, condition: str) -> tuple[int, frozenset[bytes]]:
        """How many events have reports that differ, and the keys of the rows that one of these reports may have made what they are."""
        own = set(lateness.STRETCHES.names) | {"offset", "fact", "lateness"}
        names = [name for name, *_ in self.database.execute("DESCRIBE judged").fetchall() if name not in own]
        # What other tables take from a report does not matter.
        content = ", ".join(f'"{name}"' for name in names if re.search(rf"\b{name}\b", table.sql))
        key = ", ".join(table.event_key)
        self.database.execute(lateness.CONTESTED.format(key=key, content=content, condition=condition))
        (number,) = self.database.execute(f"SELECT count(DISTINCT ({key})) FROM counted").fetchall()[0]
        rows = self._rows(table, until_ms) if number else []
        return int(number), frozenset(canonical_key(row, table.key) for row in rows)

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
    def _added(self, read: Iterable[Sequence[pa.Table]], by_format: Mapping[_Format, Collection[Facts]]) -> Iterator[bool]:
        """Adds the facts of documents, step by step."""
        waiting: dict[_Format, list[pa.Table]] = {of_format: [] for of_format in by_format}
        for documents in read:
            for of_format, table in zip(by_format, documents, strict=True):
                waiting[of_format].append(table)
                if sum(map(len, waiting[of_format])) >= AT_ONCE:
                    self._add(waiting[of_format], by_format[of_format])
                    waiting[of_format] = []
            yield True
        for of_format, rest in waiting.items():
            if rest:
                self._add(rest, by_format[of_format])

    def _add(self, documents: Sequence[pa.Table], facts: Collection[Facts]) -> None:
        existing = {name for (name,) in self.database.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        new = [group for group in facts if group.name.strip('"') not in existing]
        if not new and not any(map(len, documents)):  # to plan queries takes as long as to run them over a thousand documents
            return
        self.database.register("documents", pa.concat_tables(documents))
        steps = {name: sql for group in facts for name, sql in group.steps.items()}
        for name, sql in steps.items():
            self.database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
        for group in facts:  # CREATE TABLE IF NOT EXISTS would plan the query also for nothing
            sql = group.sql.format(**group.parameters)
            if group in new:
                self.database.execute(f"CREATE TABLE {group.name} AS FROM ({sql}) {'LIMIT 0' if group.columns_only else ''}")
            elif not group.columns_only:
                self.database.execute(f"INSERT INTO {group.name} {sql}")
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


def _ahead(items: Iterator[T]) -> Generator[T]:
    """The items. The next one is made in a thread meanwhile, until the caller closes this."""
    with ThreadPoolExecutor(1) as worker:
        pending = worker.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = worker.submit(next, items, None)
            yield item


def formats_of(facts: Collection[Facts]) -> dict[_Format, list[Facts]]:
    """The facts, by how their documents are read, and of which records. If a step is made of all records in any case, a choice would save nothing."""
    of_all_records = {(group.documents, step) for group in facts if group.only is None for step in group.steps}
    by_format: dict[_Format, list[Facts]] = {}
    for group in facts:
        has_shared_step = any((group.documents, step) in of_all_records for step in group.steps)
        by_format.setdefault((group.documents, None if has_shared_step else group.only), []).append(group)
    return by_format


def _read(records: pa.Table, formats: Collection[_Format], database: duckdb.DuckDBPyConnection) -> list[pa.Table]:
    """The documents of each format, with those records that it chooses. database: for choices alone."""
    whole = {of_format: of_format(records) for of_format, only in formats if only is None}

    def documents(of_format: Callable[[pa.Table], pa.Table], only: Choice | None) -> pa.Table:
        read = whole.get(of_format)
        if only is None:
            return read
        is_chosen = only.of(records, database)
        return of_format(records.filter(is_chosen)) if read is None else read.filter(is_chosen)

    return [documents(*of_format) for of_format in formats]


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
