"""The Confluent wire format as columns: a zero byte, the id of the writer's schema in four bytes, the Avro payload.

Everything is a native expression of Spark. Each id that is known has a branch that reads its payload, by the schema that it was written
with, to one reader's schema. Two kinds of ids are left. Those that the registry was asked for in vain make dead letters. Any other may be
a schema that was registered after the query started: it fails the query before the batch is committed, with a message that
`unknown_ids` recognises, so that the query can be started again with what the registry says then.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql.avro.functions import from_avro, to_avro

from contract.storage.data_files import data_file
from pipeline.formats.avro_schemas import reader_schema, with_fields, with_marker

PREFIX_BYTES = 5
IS_READ = "_is_read"
"""A field of every event: true, or null for a value that cannot be read."""
_UNKNOWN = "a schema id that was not known when the query started: "


@dataclass(frozen=True)
class Subject:
    """A subject of the schema registry, and the file of `data/` with the schema that this project has for it."""

    name: str
    file: str

    @property
    def schema(self) -> str:
        """That schema, in JSON."""
        return data_file(self.file).read_text()


@dataclass(frozen=True)
class WriterSchemas:
    """The schemas that values may be written with, as of one moment.

    own: the schema of the project, in JSON. by_id: each schema by the id that values carry, oldest first.
    absent: ids that the registry was asked for, and has no Avro schema of.
    """

    own: str
    by_id: Mapping[int, str] = field(default_factory=dict)
    absent: frozenset[int] = frozenset()

    @cached_property
    def reader(self) -> str:
        """What every value is read as: all fields of all versions, each null where the writer has it not."""
        return reader_schema(list(self.by_id.values()), self.own)

    def event(self, value: Column, fields: Iterable[str] | None = None) -> Column:
        """The value as a struct of the reader's schema, or of `fields` only, and IS_READ; every field is null when it cannot be read.

        Name the column once: each mention reads the value again. Evaluating it fails for an id that is neither known nor absent.
        """
        reader = with_marker(self.reader if fields is None else with_fields(self.reader, fields), IS_READ)
        options = {"mode": "PERMISSIVE", "avroSchema": reader}
        payload = F.substring(value, PREFIX_BYTES + 1, 2**31 - 1)
        known = [(_prefix(value) == F.lit(prefix(number)), from_avro(payload, text, options)) for number, text in self.by_id.items()]
        unknown = F.raise_error(F.concat(F.lit(_UNKNOWN), _id(value)))
        cases = [*known, (_has_prefix(value) & ~self._is_absent(value), unknown)]
        nothing = from_avro(F.lit(None).cast("binary"), self.own, options)  # a null of the same type, also when no id is known
        return reduce(lambda branches, case: branches.when(*case), cases[1:], F.when(*cases[0])).otherwise(nothing)

    def reason(self, value: Column, event: Column) -> Column:
        """Why a value cannot be read, or null if it can. event: what `event` made of it."""
        return (
            F.when(event[IS_READ], F.lit(None).cast("string"))
            .when(value.isNull() | (F.length(value) == 0), "empty")
            .when(~_has_prefix(value), "not in the Confluent wire format")
            .when(self._is_absent(value), F.concat(F.lit("the registry has no Avro schema of id "), _id(value)))
            .otherwise(F.concat(F.lit("broken, or not what its schema says, id "), _id(value)))
        )

    def _is_absent(self, value: Column) -> Column:
        # Ids are positive: a number with the highest bit set is none, and the registry need not be asked.
        return (F.substring(value, 2, 1) >= F.lit(b"\x80")) | _prefix(value).isin([prefix(number) for number in self.absent])


def events(records: DataFrame, schemas: WriterSchemas, fields: Iterable[str] | None = None) -> DataFrame:
    """`records` with a column `event`, see WriterSchemas.event; each value is read once, however `event` is used afterwards."""
    # No filter is moved in front of a generator: a column made by `select` would be computed for the filter, and then again.
    return records.select("*", F.explode(F.array(schemas.event(F.col("value"), fields))).alias("event"))


def encoded(row: Column, schema_id: int, schema: str) -> Column:
    """A struct as a value in the wire format, written by `schema`, the one registered under `schema_id`."""
    return F.concat(F.lit(prefix(schema_id)), to_avro(row, schema))


def prefix(schema_id: int) -> bytes:
    """The bytes in front of a payload that the schema with that id has written."""
    return struct.pack(">bI", 0, schema_id)


def schema_ids(values: DataFrame) -> set[int]:
    """The ids of all values in the wire format. values: a column `value`, binary."""
    prefixes = values.where(_has_prefix(F.col("value"))).select(_prefix(F.col("value")).alias("prefix")).distinct().collect()
    return {struct.unpack(">bI", row.prefix)[1] for row in prefixes}


def unknown_ids(failure: str) -> set[int]:
    """The schema ids for which a query failed that had met an unknown one, by its error's text; none when it failed for another reason."""
    return {int(number) for number in re.findall(rf"{re.escape(_UNKNOWN)}(\d+)", failure)}


def _prefix(value: Column) -> Column:
    return F.substring(value, 1, PREFIX_BYTES)


def _has_prefix(value: Column) -> Column:
    return (F.length(value) >= PREFIX_BYTES) & (F.substring(value, 1, 1) == F.lit(b"\x00"))


def _id(value: Column) -> Column:
    return F.conv(F.hex(F.substring(value, 2, 4)), 16, 10)
