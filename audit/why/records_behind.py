"""The records behind one row of a result topic: those that count, those that repeat one of them, and those that came too late."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import orjson
import pyarrow as pa

from audit.audited import Facts, Row, Table
from audit.checks.dead_letters import letters_of
from audit.checks.store import Store
from audit.checks.table_check import TableCheck
from audit.reading.read_range import ReadRange
from audit.reading.records import records_between
from audit.reading.result_topic import ends_of
from audit.recount import lateness
from audit.recount.recount import canonical_key
from audit.time_range import TimeRange
from audit.verdicts.comparison import Comparison
from audit.why.explanation import Cause, Explanation, Letter, Sample
from audit.why.row_key import Wanted
from contract.checkpoints.names import CheckpointPlace
from contract.topics import DEAD_LETTERS
from contract.windows import window_of
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

ATTEMPTS = 3
_TIMES = 'SELECT topic, partition, "offset", "timestamp" AS kafka_time FROM documents'

_COUNTED = f"""
    CREATE OR REPLACE TEMP TABLE behind AS
    SELECT
        topic, partition, "offset", fact, event_time, kafka_time, NULL AS watermark, lateness = {lateness.UNKNOWN} AS is_unknown,
        lateness = {lateness.WRONGLY_LATE} AS is_dropped, row_number() OVER event AS nth,
        first_value({{{{'topic': topic, 'partition': partition, 'offset': "offset"}}}}) OVER event AS counted
    FROM (
        SELECT *, {{time}} AS event_time
        FROM judged LEFT JOIN times USING (topic, partition, "offset")
        WHERE {{condition}} AND lateness <> {lateness.LATE} AND row({{key}}) IN (SELECT row({{key}}) FROM judged WHERE fact IN (FROM picked)))
    WINDOW event AS (PARTITION BY {{key}} ORDER BY late_until, kafka_time, topic, partition, "offset")
"""
_LATE = f"""
    SELECT topic, partition, "offset", {{time}} AS event_time, kafka_time, late_until AS watermark, row({{key}}) IN (
        SELECT row({{key}}) FROM judged WHERE fact IN (SELECT fact FROM behind)) AS is_counted
    FROM judged LEFT JOIN times USING (topic, partition, "offset")
    WHERE lateness = {lateness.LATE} AND fact IN (FROM picked)
"""
_IN_ORDER = 'kafka_time, topic, partition, "offset"'


class SeveralRows(StreamgaugeError):  # noqa: N818 - it names what was found
    """More than one row fits the parts of the key. keys: of these rows."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        super().__init__(f"{len(keys):,} rows fit; name one of them by more of its key")
        self.keys = keys


def why(table: Table, place: CheckpointPlace, key: Sequence[str], settings: Settings, *, limit: int, with_late: bool = True) -> Explanation:
    """Explains the row with that key, or the only one whose key has these parts, as audit.why.row_key reads them.

    with_late: also reads records that came after the window was final, which can only be late.
    Raises SeveralRows, and StreamgaugeError if no row fits, or retention has deleted its records.
    """
    for attempt in range(ATTEMPTS):
        with closing(Store(settings)) as store:
            check = TableCheck(table, place, store)
            check.prepare()
            explanation = _Row(table, _chosen(key, check, table), check, store).explained(limit, with_late=with_late)
            if not (explanation.is_wrong and check.has_grown()) or attempt == ATTEMPTS - 1:
                break
    return explanation


def _chosen(texts: Sequence[str], check: TableCheck, table: Table) -> bytes:
    """The key of the only row that fits. One with all columns need not be there: the row may be missing."""
    wanted = Wanted.of(texts, table.key)
    parsed = {key: row for key in check.rows if isinstance(row := _parsed(key), dict) and row.keys() == set(table.key)}
    fitting = sorted(key for key, row in parsed.items() if wanted.fits(row))
    if len(fitting) > 1:
        raise SeveralRows(fitting)
    if fitting:
        return fitting[0]
    if wanted.by_name.keys() == set(table.key):
        whole = canonical_key(wanted.by_name, table.key)
        if window_of(whole) or {"window", "started"}.isdisjoint(table.key):
            return whole
    raise StreamgaugeError(wanted.nothing_fits(parsed.values()))


def _parsed(key: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return orjson.loads(key)
    except ValueError:
        return None


class _Row:
    """One row, whose table is checked in `store`."""

    def __init__(self, table: Table, key: bytes, check: TableCheck, store: Store) -> None:
        self._table, self._key, self._check, self._recount, self._settings = table, key, check, store.recount, store.settings
        self._event = ", ".join(table.distinct or table.event_key)
        self._until_ms = 0

    def explained(self, limit: int, *, with_late: bool) -> Explanation:
        """The records behind the row, `limit` of each kind."""
        table, check, key = self._table, self._check, self._key
        if window := window_of(key):
            check.narrow(TimeRange(window.start, window.end), to_the_end=with_late)
        read_range: ReadRange[Any] = check.read_range
        times = Facts("times", table.facts.source, _TIMES, documents=table.facts.documents, only=table.facts.only)
        records = records_between(self._settings, read_range.starts, read_range.ends, read_range.files)
        self._recount.load([table.facts, times], records)
        compared = check.compared()
        comparison, totals = compared.comparison, compared.recounted.totals
        expected, condition = self._expected(comparison), check.needed.condition(table)
        is_committed = expected == comparison.expected.get(key)
        if is_committed:
            condition = f"NOT is_ahead AND {condition}"
        self._until_ms = read_range.watermark_ms(read_range.committed if is_committed else read_range.planned)
        counted, repeated, late = self._causes(condition, limit)
        letters, others = self._letters(limit)
        found = comparison.found.get(key)
        if found is None and expected is None and not late.count:
            msg = f"there is no row {key.decode()}, and none should be there: no record counts for it, and none came too late"
            raise StreamgaugeError(msg)
        if read_range.truncated and not (counted.count or late.count):
            msg = f"of the row {key.decode()}, no record is left: {'; '.join(read_range.notes)}"
            raise StreamgaugeError(msg)
        return Explanation(
            query=table.query,
            topic=table.topic.name,
            key=key.decode(),
            kind=comparison.kinds.get(key, "equal"),
            found=found,
            expected=expected,
            counted=counted,
            repeated=repeated,
            late=late,
            letters=letters,
            other_letters=others,
            is_sum=self._sum() == expected,
            records=read_range.records,
            notes=self._notes(totals.unknown_rows, with_late=with_late),
        )

    def _expected(self, comparison: Comparison) -> Row | None:
        """The row of the last committed batch, or of the batch under way if that is what the topic has."""
        found, expected = comparison.found.get(self._key), comparison.expected.get(self._key)
        accepted = [expected, *comparison.under_way.get(self._key, ())]
        for row in accepted:
            both = Comparison({} if found is None else {self._key: found}, {} if row is None else {self._key: row})
            if not both.counts.keys() - {"equal"}:
                return row
        return expected

    def _causes(self, condition: str, limit: int) -> tuple[Sample, Sample, Sample]:
        """The records that count, those that repeat one of them, and those that came too late. All but the last are in table `behind`."""
        names = {"time": self._table.event_time, "key": self._event, "condition": condition}
        self._pick(self._facts(condition, lateness.COUNTED))
        self._recount.database.execute(_COUNTED.format(**names))
        counted = self._sample("FROM behind WHERE nth = 1", limit)
        repeated = self._sample("FROM behind WHERE nth > 1", limit)
        self._pick(self._facts(condition, lateness.ALL))
        return counted, repeated, self._sample(_LATE.format(**names), limit)

    def _facts(self, condition: str, view: str) -> list[int]:
        """The facts in this row, of those that the view shows."""
        table, key = self._table, _parsed(self._key)
        if table.fold is not None:  # a history, of which each report may matter
            database = self._recount.database
            columns = {name for (name,) in database.execute("SELECT column_name FROM (DESCRIBE judged)").fetchall()} & key.keys()
            if not all(isinstance(key[name], str) for name in columns):  # as these columns are
                return []
            same = " AND ".join(f'"{name}" IS NOT DISTINCT FROM ${name}' for name in columns)
            return [
                fact
                for (fact,) in database.execute(
                    f"SELECT fact FROM judged WHERE {condition} AND {same}", {name: key[name] for name in columns}
                ).fetchall()
            ]
        rows = self._recount.with_facts(table, self._until_ms, condition, view)
        return [fact for row in rows if self._is_own(row, key, may_be_near=view == lateness.ALL) for fact in row["facts"]]

    def _is_own(self, row: Row, key: Mapping[str, Any], *, may_be_near: bool) -> bool:
        """Whether a row is this one. may_be_near: or, if it is a session, one that could have been joined with it."""
        if not (may_be_near and self._table.session_gap_us and window_of(self._key)):
            return canonical_key(row, self._table.key) == self._key
        session = self._window
        return all(row[name] == value for name, value in key.items() if name not in {"window", "started"}) and (
            row["window"]["start"] <= session["end"] and row["window"]["end"] >= session["start"]
        )

    @property
    def _window(self) -> Mapping[str, str]:
        """The window of the session, of which the key may have the start alone."""
        key, found = _parsed(self._key), self._check.rows.get(self._key)
        if "window" in key:
            return dict(key["window"])
        window = found.get("window") if isinstance(found, Mapping) else None
        return dict(window or {"start": key["started"], "end": key["started"]})

    def _pick(self, facts: Sequence[int]) -> None:
        self._recount.database.register("picked", pa.table({"fact": pa.array(facts, pa.int64())}))

    def _sample(self, sql: str, limit: int) -> Sample:
        ((count,),) = self._recount.database.execute(f"SELECT count(*) FROM ({sql})").fetchall()
        rows = self._recount.database.sql(f"FROM ({sql}) ORDER BY {_IN_ORDER} LIMIT {limit}").to_arrow_table().to_pylist()
        return Sample(count, [self._cause(row) for row in rows])

    def _cause(self, row: Row) -> Cause:
        partition, offset = (row["topic"], row["partition"]), row["offset"]
        batch = next((batch.number for batch in self._check.read_range.batches if batch.ends.get(partition, 0) > offset), -1)
        notes = {
            "is_unknown": "may have come too late: the journal lacks its batch",
            "is_dropped": "was dropped: the watermark was ahead of every event that counts",
            "is_counted": "another record of its event counts",
        }
        return Cause(
            *partition,
            offset,
            row["kafka_time"],
            row["event_time"],
            batch,
            counted=(counted["topic"], counted["partition"], counted["offset"])
            if row.get("nth", 1) > 1 and (counted := row["counted"])
            else None,
            watermark=row["watermark"],
            note="; ".join(text for name, text in notes.items() if row.get(name)),
        )

    def _sum(self) -> Row | None:
        """The row that the counted records alone give."""
        rows = self._recount.written(self._table, self._until_ms, "fact IN (SELECT fact FROM behind WHERE nth = 1)")
        return rows.get(self._key, [None])[-1]

    def _letters(self, limit: int) -> tuple[Sample, int]:
        """The dead letters of the records behind the row, and the number of those of other records that were read."""
        read_range = self._check.read_range
        letters = letters_of(self._settings, read_range.topics, "", ends_of(DEAD_LETTERS, self._settings)).by_origin
        read = {origin: of_record for origin, of_record in letters.items() if read_range.has(origin[:2], origin[2])}
        behind = (
            'SELECT topic, partition, "offset" FROM behind UNION SELECT topic, partition, "offset" FROM judged WHERE fact IN (FROM picked)'
        )
        records = set(self._recount.database.execute(behind).fetchall())
        behind_row = sorted(read.keys() & records)
        shown = [Letter(*origin, read[origin][0].reasons[0]) for origin in behind_row[:limit]]
        return Sample(len(behind_row), shown), len(read) - len(behind_row)

    def _notes(self, unknown_rows: int, *, with_late: bool) -> list[str]:
        read_range = self._check.read_range
        unknown = f"the journal lacks batches: of {unknown_rows:,} records it is not known whether they came too late"
        return [
            *read_range.notes,
            *([unknown] if unknown_rows else []),
            *([] if with_late else ["records that came too late, after the window was final, were not read"]),
        ]
