"""What the results of the Wikimedia domain must be."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import pyarrow as pa

from audit.audited import Facts, Table
from audit.checks.archive import Archive
from audit.checks.dead_letters import DeadLetters
from audit.values.avro_schemas import read_by
from audit.values.documents import NO_CLOCK, AvroValues, Value, avro_documents
from audit.values.fields import too_long, when
from contract.domains.wikimedia import WIKIMEDIA, WIKIMEDIA_EDITOR_SESSIONS, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from infrastructure import durations
from infrastructure.errors import StreamgaugeError
from infrastructure.registry.avro_reader import AvroReader
from infrastructure.registry.client import SchemaRegistry
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file

LAST_SECOND = 253_402_300_799
"""The last of the year 9999."""
MOST_PAGE_BYTES = 2**40
"""No page is as long: a length beyond is a mistake, and counts as unknown."""

FIELDS = pa.schema(
    {
        "id": pa.string(),
        "type": pa.string(),
        "seconds": pa.int64(),
        "bot": pa.bool_(),
        "wiki": pa.string(),
        "namespace": pa.int64(),
        "old": pa.int64(),
        "new": pa.int64(),
        "user": pa.string(),
    }
)
"""The columns of `documents`: what is taken from a change."""

CHANGES = f"""
    SELECT *, CASE WHEN seconds BETWEEN 0 AND {LAST_SECOND} THEN moment_of_ms(seconds * 1000) END AS changed_at
    FROM documents WHERE problem IS NULL
"""
_IS_WHOLE = "bot IS NOT NULL AND wiki IS NOT NULL AND is_identifier(wiki) AND namespace IS NOT NULL AND changed_at IS NOT NULL"

EDITS = f"""
    SELECT
        topic, partition, "offset", coalesce(nullif(id, ''), concat_ws('-', topic, partition, "offset")) AS event_id,
        changed_at AS edited_at, CASE WHEN bot THEN 'Bot' ELSE 'Human' END AS requested_by, wiki, namespace,
        CASE WHEN old BETWEEN 0 AND {MOST_PAGE_BYTES} AND new BETWEEN 0 AND {MOST_PAGE_BYTES} THEN new - old ELSE 0 END AS bytes, "user"
    FROM changes
    WHERE type = 'edit' AND {_IS_WHOLE} AND changed_at <= clock + INTERVAL '{{future}}'
"""

EDIT_STATS = """
    SELECT window_from(start, {length_us}) AS "window", requested_by, count(*) AS counts{facts}
    FROM (SELECT *, unnest(windows(edited_at, {length_us}, {slide_us})) AS start FROM counted)
    GROUP BY ALL
"""

WIKI_STATS = """
    SELECT
        wiki, namespace, window_from(date_trunc('minute', edited_at), 60000000) AS "window", count(*) AS edits,
        sum(greatest(bytes, 0)) AS bytes_added, sum(greatest(-bytes, 0)) AS bytes_removed{facts}
    FROM counted
    GROUP BY ALL
"""

SESSION_GAP_US = 5 * 60 * 1_000_000
"""A longer pause between edits ends a session of an editor; one of exactly this length does not."""

EDITOR_SESSIONS = f"""
    SELECT
        "user", window_from(min(edited_at), epoch_us(max(edited_at)) - epoch_us(min(edited_at)) + {SESSION_GAP_US}) AS "window",
        count(*) AS edits, sum(greatest(bytes, 0)) AS bytes_added, sum(greatest(-bytes, 0)) AS bytes_removed,
        max(edited_at) + to_microseconds({SESSION_GAP_US}) AS ends{{facts}}
    FROM (
        SELECT *, count_if(is_first) OVER (PARTITION BY "user" ORDER BY edited_at) AS session
        FROM (
            SELECT
                * REPLACE (coalesce("user", '') AS "user"),
                ends_session(edited_at, lag(edited_at) OVER of_user, {SESSION_GAP_US}) AS is_first
            FROM counted
            WINDOW of_user AS (PARTITION BY coalesce("user", '') ORDER BY edited_at)))
    GROUP BY "user", session
"""


OWN = json.loads(data_file("schemas/wikimedia-value.avsc").read_text())
"""The project's schema, which decides the types of its fields."""


def fields(change: Value) -> tuple[object, ...]:
    """The values of FIELDS. A field that the change's schema lacks is null."""
    length, meta = change.get("length") or {}, change.get("meta") or {}
    own = (_whole(change.get(name)) for name in ("type", "timestamp", "bot", "wiki", "namespace"))
    return (meta.get("id"), *own, _whole(length.get("old")), _whole(length.get("new")), change.get("user"))


def _whole(value: object) -> object:
    """A number that another schema has made a double, as a whole one; null if 64 bits do not hold it. Any other value as it is."""
    if not isinstance(value, float):
        return value
    return int(value) if -(2.0**63) <= value < 2.0**63 else None


_WITHOUT_SCHEMA = (
    "the registry has no Avro schema of id ",
    "more than 100 ids came that the registry does not have, and it was not asked for id ",
)
"""Which of the two a letter tells depends on the ids that came before. Both may be of a schema that was registered later."""
REASONS = f"""
    SELECT topic, partition, "offset", unnest([
        {when("type IS NULL", "no type")}, {too_long("wiki", "wiki")},
        {when(f"type = 'edit' AND NOT ({_IS_WHOLE})", "an edit without bot, namespace, timestamp or wiki")},
        CASE WHEN type = 'edit' THEN {too_long('"user"', "user")} || ', so no session counts it' END,
        {when("changed_at > clock + INTERVAL '{future}'", "timestamp is in the future")}, {when("clock IS NULL", NO_CLOCK.replace("'", "''"))}
    ]) || '; archived all the same' AS reason
    FROM changes
    UNION ALL
    SELECT topic, partition, "offset", unnest({list(_WITHOUT_SCHEMA)}) || regexp_extract(problem, ' id ([0-9]+)', 1)
    FROM documents WHERE regexp_matches(problem, ' id [0-9]+')
"""

_OWN = {
    "kafka_topic": pa.string(),
    **dict.fromkeys(("kafka_partition", "kafka_offset"), pa.int64()),
    **dict.fromkeys(("kafka_timestamp", "changed_at"), pa.timestamp("us")),
    "date": pa.date32(),
}


def archived(records: pa.Table, files: pa.Schema, *, values: AvroValues) -> pa.Table:
    """Every change that can be read, of every type, with all its fields: those columns that the archive's files have."""
    schema = pa.schema([*_OWN.items(), *(field for field in files if field.name not in _OWN)])
    origins = records.select(["topic", "partition", "offset", "timestamp"]).to_pylist()
    read = zip(origins, values.of(records), strict=True)
    rows = [_archived(origin, change) for origin, change in read if not isinstance(change, str)]
    return pa.Table.from_arrays([_column([row.get(field.name) for row in rows], field) for field in schema], schema=schema)


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array([_with_pairs(value, field.type) for value in values] if _has_maps(field.type) else values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:  # such as a union of several types
        msg = f"column {field.name} of wikimedia-archive, {field.type}, cannot be compared with its records ({error}); verify the other queries by their names"
        raise StreamgaugeError(msg) from error


def _has_maps(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_maps(kind.field(number).type) for number in range(kind.num_fields))


def _with_pairs(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - any value of Avro
    """The value with its maps as pairs, as Arrow takes them."""
    if isinstance(value, list) and pa.types.is_list(kind):
        return [_with_pairs(element, kind.value_type) for element in value]
    if isinstance(value, dict) and pa.types.is_map(kind):
        return [(name, _with_pairs(item, kind.item_type)) for name, item in value.items()]
    if isinstance(value, dict) and pa.types.is_struct(kind):
        return {field.name: _with_pairs(value.get(field.name), field.type) for field in kind}
    return value


def _archived(origin: Mapping[str, Any], change: Value) -> dict[str, Any]:
    seconds = _whole(change.get("timestamp"))
    changed_at = (
        datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None) if isinstance(seconds, int) and 0 <= seconds <= LAST_SECOND else None
    )
    row = {f"kafka_{name}": value for name, value in origin.items()}
    row |= {"changed_at": changed_at, "date": (changed_at or origin["timestamp"]).date()}
    row |= zip(_columns(tuple(change)), change.values(), strict=True)
    return row


@cache
def _columns(fields: tuple[str, ...]) -> list[str]:
    """The archive's columns for the fields of a change. A field with the name of another column, in any case, begins with `event_`."""
    taken = {column.lower() for column in _OWN}
    columns = []
    for field in fields:
        column = field
        while column.lower() in taken:
            column = f"event_{column}"
        taken.add(column.lower())
        columns.append(column)
    return columns


def reader_of(registry: SchemaRegistry) -> AvroReader:
    return AvroReader(registry, read_by=partial(read_by, reader_schema=OWN))


def audited(settings: Settings) -> tuple[Table | Archive | DeadLetters, ...]:
    values = AvroValues(reader_of(SchemaRegistry(settings.registry)))
    documents = partial(avro_documents, values=values, fields=fields, schema=FIELDS)
    facts = partial(Facts, source=WIKIMEDIA.name, parameters={"future": settings.future}, steps={"changes": CHANGES}, documents=documents)
    count = partial(Table, event_time="edited_at", event_key=("event_id", "edited_at"), watermark=settings.wikimedia_watermark)
    length = durations.microseconds(settings.wikimedia_window, "STREAMGAUGE_WIKIMEDIA_WINDOW")
    slide = durations.microseconds(settings.wikimedia_slide, "STREAMGAUGE_WIKIMEDIA_SLIDE")
    edits, totals = facts("edits", sql=EDITS), ("edits", "bytes_added", "bytes_removed")
    return (
        count(
            "wikimedia-edit-stats",
            WIKIMEDIA_PROCESSED,
            edits,
            key=("requested_by", "window"),
            sql=EDIT_STATS,
            parameters={"length_us": length, "slide_us": slide},
            growing=("counts",),
        ),
        count("wikimedia-wiki-stats", WIKIMEDIA_WIKI_STATS, edits, key=("wiki", "namespace", "window"), sql=WIKI_STATS, growing=totals),
        count(
            "wikimedia-editor-sessions",
            WIKIMEDIA_EDITOR_SESSIONS,
            facts("edits_of_users", sql=f'{EDITS} AND is_identifier("user")'),
            key=("user", "window"),
            sql=EDITOR_SESSIONS,
            mode="append",
            growing=totals,
            session_gap_us=SESSION_GAP_US,
        ),
        Archive(
            "wikimedia-archive",
            "wikimedia/changes",
            Facts("rows_of_changes", WIKIMEDIA.name, "SELECT * FROM documents"),
            documents=partial(archived, values=values),
            origin_prefix="kafka_",
        ),
        DeadLetters("wikimedia-dead-letters", facts("wikimedia_letters", sql=REASONS)),
    )
