"""Records as DuckDB takes them: with their contents in columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from audit.values.json_texts import json_text
from infrastructure.registry.avro_reader import AvroReader, schema_id_of

Value = Mapping[str, Any]
"""What an Avro record says."""
NO_CLOCK = "the record's Kafka timestamp is not of the years 1970 to 2999; expected milliseconds since 1970"


def json_documents(records: pa.Table) -> pa.Table:
    """The records of a JSON topic, with their texts in column `document`; null for one that cannot be used, and why in `problem`."""
    texts, problems = records["value"].to_pylist(), records["problem"].to_pylist()
    has_no_clock = records["clock"].is_null().to_pylist()
    for number, value in enumerate(texts):
        text, reason = json_text(value)
        problems[number] = problems[number] or reason or (NO_CLOCK if has_no_clock[number] else None)
        texts[number] = text if problems[number] is None else None
    return (
        records.drop_columns("problem")
        .append_column("problem", pa.array(problems, pa.string()))
        .append_column("document", pa.array(texts, pa.string()))
    )


class AvroValues:
    """The values of Avro records. Reading them takes most of the time of a recount, so those of the last table are kept for the next format."""

    def __init__(self, reader: AvroReader) -> None:
        self._reader = reader
        self._records: pa.Table | None = None
        self._values: list[Value | str] = []

    def of(self, records: pa.Table) -> Sequence[Value | str]:
        """For each record its value, or the reason why it cannot be read. Raises RegistryUnavailable when the registry does not answer."""
        if records is not self._records:
            self._values = [avro_value(value, self._reader) for value in records["value"].to_pylist()]
            self._records = records
        return self._values


def avro_documents(records: pa.Table, *, values: AvroValues, fields: Callable[[Value], tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """The records of an Avro topic, with the columns of `schema`, which `fields` takes from a value; null for one that cannot be read."""
    read = values.of(records)
    problems = [value if isinstance(value, str) else None for value in read]
    rows = [(None,) * len(schema) if isinstance(value, str) else fields(value) for value in read]
    table = records.drop_columns("problem").append_column("problem", pa.array(problems, pa.string()))
    for field, column in zip(schema, zip(*rows, strict=True) if rows else [()] * len(schema), strict=True):
        table = table.append_column(field, pa.array(column, field.type))
    return table


def avro_value(value: bytes | None, reader: AvroReader) -> Value | str:
    """What an Avro record says, or the reason why it cannot be read. Raises RegistryUnavailable when the registry does not answer."""
    try:
        found, _ = reader.read(value or b"")
    except ValueError as error:
        return str(error)
    return found if isinstance(found, dict) else f"the schema of id {schema_id_of(value or b'')} cannot be used: it is not a record"
