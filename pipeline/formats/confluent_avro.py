"""The Confluent wire format as columns: a zero byte, the writer's schema id in four bytes, the Avro payload.

Decoding uses only Spark's native expressions: one branch per known schema id, which decodes the payload from its writer schema to the
common reader schema. Values with an id that the registry does not have are dead letters. Any other unknown id may belong to a schema
registered after the query started: the query fails before it commits the batch, with a message that `unknown_ids` recognises, and the
runner can restart it with the registry's current schemas.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql.avro.functions import from_avro, to_avro

from contract.registry.client import SchemaRegistry
from contract.storage.data_files import data_file
from pipeline.formats.avro_schemas import reader_schema, with_fields, with_marker

PREFIX_BYTES = 5
IS_READ = "_is_read"
"""A field of every event: true, or null if the value cannot be decoded."""
_UNKNOWN = "a schema id that was not known when the query started: "


@dataclass(frozen=True)
class Subject:
    """A subject of the schema registry, and the file in `data/` with this project's schema for it."""

    name: str
    file: str

    @property
    def schema(self) -> str:
        """The project's schema, in JSON."""
        return data_file(self.file).read_text()


@dataclass(frozen=True)
class WriterSchemas:
    """The known writer schemas of a subject at one point in time.

    own: the project's schema, in JSON.
    by_id: schema by the id in the values, oldest first.
    absent: ids for which the registry has no Avro schema.
    """

    own: str
    by_id: Mapping[int, str] = field(default_factory=dict)
    absent: frozenset[int] = frozenset()

    @cached_property
    def reader(self) -> str:
        """The reader schema: the fields of all versions, each null where the writer lacks it."""
        return reader_schema(list(self.by_id.values()), self.own)

    def event(self, value: Column, fields: Iterable[str] | None = None) -> Column:
        """The value as a struct of the reader schema, or of `fields` only, plus IS_READ. All fields are null if it cannot be decoded.

        Use the column once: Spark decodes the value again at each mention. Evaluation fails for an id that is neither known nor absent.
        """
        reader = with_marker(self.reader if fields is None else with_fields(self.reader, fields), IS_READ)
        options = {"mode": "PERMISSIVE", "avroSchema": reader}
        payload = F.substring(value, PREFIX_BYTES + 1, 2**31 - 1)
        known = [(_prefix(value) == F.lit(prefix(number)), from_avro(payload, text, options)) for number, text in self.by_id.items()]
        unknown = F.raise_error(F.concat(F.lit(_UNKNOWN), _id(value)))
        cases = [*known, (_has_prefix(value) & ~self._is_absent(value), unknown)]
        nothing = from_avro(F.lit(None).cast("binary"), self.own, options)  # a typed null, even if no id is known
        return reduce(lambda branches, case: branches.when(*case), cases[1:], F.when(*cases[0])).otherwise(nothing)

    def reason(self, value: Column, event: Column) -> Column:
        """The reason why a value cannot be decoded, or null. event: the result of `event` for this value."""
        return (
            F.when(event[IS_READ], F.lit(None).cast("string"))
            .when(value.isNull() | (F.length(value) == 0), "empty")
            .when(~_has_prefix(value), "not in the Confluent wire format")
            .when(self._is_absent(value), F.concat(F.lit("the registry has no Avro schema of id "), _id(value)))
            .otherwise(F.concat(F.lit("broken, or not what its schema says, id "), _id(value)))
        )

    def _is_absent(self, value: Column) -> Column:
        # Ids are positive, so one with the highest bit set cannot be registered.
        return (F.substring(value, 2, 1) >= F.lit(b"\x80")) | _prefix(value).isin([prefix(number) for number in self.absent])


class SchemaBook:
    """The known writer schemas of each subject, shared by all queries. Not thread-safe.

    Fetches them from the registry once, and again when a query meets an unknown id.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._known: dict[Subject, WriterSchemas] = {}

    def of(self, subject: Subject) -> WriterSchemas:
        """The schemas of `subject` as last fetched. Raises RegistryUnavailable if they must be fetched and the registry cannot be reached."""
        if subject not in self._known:
            self._known[subject] = WriterSchemas(subject.schema, self._registry.versions(subject.name))
        return self._known[subject]

    def learn(self, subject: Subject, ids: frozenset[int]) -> None:
        """Ensures that each of `ids` is known or absent; queries the registry if necessary.

        Finds ids of other subjects too, because subjects may be named after the record instead of the topic. Raises RegistryUnavailable, and then
        changes nothing.
        """
        known = self.of(subject)
        unknown = ids - known.by_id.keys() - known.absent
        if not unknown:
            return
        own = self._registry.versions(subject.name)
        elsewhere = {number: text for number in sorted(unknown - own.keys()) if (text := self._registry.schema(number))}
        others = {number: text for number, text in {**known.by_id, **elsewhere}.items() if number not in own}
        by_id = {**others, **own}  # its own versions come last: the newest schema decides the types in the reader schema
        self._known[subject] = replace(known, by_id=by_id, absent=known.absent | (unknown - by_id.keys()))


def events(records: DataFrame, schemas: WriterSchemas, fields: Iterable[str] | None = None) -> DataFrame:
    """`records` plus a column `event`, see WriterSchemas.event. Each value is decoded once, however often `event` is used."""
    # Spark does not push filters below a generator. With a plain `select` it would decode once for the filter and once for the result.
    return records.select("*", F.explode(F.array(schemas.event(F.col("value"), fields))).alias("event"))


def encoded(row: Column, schema_id: int, schema: str) -> Column:
    """A struct as a value in the wire format. schema: the schema registered under `schema_id`."""
    return F.concat(F.lit(prefix(schema_id)), to_avro(row, schema))


def prefix(schema_id: int) -> bytes:
    """The bytes before a payload written with schema `schema_id`."""
    return struct.pack(">bI", 0, schema_id)


def schema_ids(values: DataFrame) -> set[int]:
    """The schema ids of all values in the wire format. values: a column `value`, binary."""
    prefixes = values.where(_has_prefix(F.col("value"))).select(_prefix(F.col("value")).alias("prefix")).distinct().collect()
    return {struct.unpack(">bI", row.prefix)[1] for row in prefixes}


def unknown_ids(failure: str) -> set[int]:
    """The unknown schema ids that made a query fail, from its error message; empty if it failed for another reason."""
    return {int(number) for number in re.findall(rf"{re.escape(_UNKNOWN)}(\d+)", failure)}


def _prefix(value: Column) -> Column:
    return F.substring(value, 1, PREFIX_BYTES)


def _has_prefix(value: Column) -> Column:
    return (F.length(value) >= PREFIX_BYTES) & (F.substring(value, 1, 1) == F.lit(b"\x00"))


def _id(value: Column) -> Column:
    return F.conv(F.hex(F.substring(value, 2, 4)), 16, 10)
