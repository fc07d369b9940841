"""How a domain describes its results: facts, which are taken from each record once, and tables, which are counted from facts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from audit.values.choices import Choice
from audit.values.documents import json_documents
from contract.topics import Topic

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """The facts of a topic's records, as rows of a table of that name.

    source: the name of the topic in Kafka.
    documents: adds the columns of the format to those of records.SCHEMA.
    only: the records from which facts may be taken; None for all.
    steps: tables by name, with their SQL: each is made of `documents`, and of those before it.
    sql: over `documents` and these tables. Returns topic, partition, "offset", and what is counted. {name} in it is a parameter.
    columns_only: the table gets no rows.
    """

    name: str
    source: str
    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    documents: Callable[[pa.Table], pa.Table] = json_documents
    only: Choice | None = None
    columns_only: bool = False


@dataclass(frozen=True)
class Table:
    """What the compacted topic `topic` must hold.

    query: writes the topic. facts: those that count. event_time: their column with the time that decides whether they are late. event_key: their
    columns that identify an event, which counts once.
    sql: over `counted`, the facts that were in time, each event once. Returns the columns of a row, times as text; and `ends`, if windows do not
    end with whole seconds. {name} is a parameter, {until} the watermark up to which timers have fired. {facts} follows the columns where facts
    become a row: for `streamgauge why`, it adds column `facts` with the numbers of the facts in the row.
    distinct: the columns that identify a fact, if those are not the event key.
    counts: SQL, whether a fact can count at all. Others only move the watermark, and it does not matter whether they are late.
    fold: makes rows from those of `sql`, up to the watermark `until_ms`, in the order in which they are written: the last row of a key counts, and
    one with key columns only deletes. It changes the state that it is given, which is that of an earlier watermark; an empty mapping at first.
    skew: how far an idle partition can hold the watermark back, if it is not the setting for all queries.
    session_gap_us: the pause that ends a session, in microseconds, of session windows.
    value: the columns in a record's value, if it does not have all. Then the topic also has rows of other queries, and older ones than the facts.
    current: of a new version of a query, the topic of the current one.
    mode: the output mode of the query. In append mode, a row is written once, when the watermark has passed the end of its window.
    key: the columns of the key. watermark: how late a fact may be, e.g. "10 minutes". growing: columns that more records can only increase.
    """

    query: str
    topic: Topic
    facts: Facts
    event_time: str
    event_key: tuple[str, ...]
    key: tuple[str, ...]
    watermark: str
    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    growing: tuple[str, ...] = ()
    mode: str = "update"
    distinct: tuple[str, ...] = ()
    counts: str = "true"
    fold: Callable[[Sequence[Row], int, dict[Any, Any]], Iterable[Row]] | None = None
    skew: str | None = None
    session_gap_us: int = 0
    value: tuple[str, ...] = ()
    current: Topic | None = None

    @property
    def sink(self) -> str:
        return f"topic {self.topic.name}"
