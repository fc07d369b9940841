"""The Confluent wire format as columns: a zero byte, the writer's schema id in four bytes, the Avro payload.

Decoding uses only Spark's native expressions: one branch per known schema id, which decodes the payload from its writer schema to the
common reader schema. Values with an id that the registry does not have, or whose schema cannot be used, are dead letters. Any other
unknown id may belong to a schema registered after the query started: the query fails before it commits the batch, with a message that
`unknown_ids` recognises, and the runner can restart it with the registry's current schemas.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.avro.functions import from_avro, to_avro

from contract.topics import Topic
from infrastructure.registry.nesting import most_bytes
from infrastructure.storage.data_files import data_file
from pipeline.formats.avro_schemas import reader_schema, with_marker

PREFIX_BYTES = 5
MOST_UNKNOWN_IDS = 100
"""How many ids that the registry does not have are remembered, and asked for again. Random bytes have billions."""
IS_READ = "_is_read"
"""A field of every event: true, or null if the value cannot be decoded. In `events`, false if a text in it is not UTF-8."""
_UNKNOWN = "a schema id that was not known when the query started: "


@dataclass(frozen=True)
class Subject:
    """The subject of a topic's values in the schema registry."""

    topic: Topic

    @property
    def name(self) -> str:
        return f"{self.topic.name}-value"

    @property
    def schema(self) -> str:
        """The project's schema, in JSON."""
        return data_file(f"schemas/{self.topic.plain_name}-value.avsc").read_text()


@dataclass(frozen=True)
class WriterSchemas:
    """The known writer schemas of a subject at one point in time.

    project_schema: the project's schema, in JSON.
    by_id: schema by the id in the values, oldest first.
    unusable: ids of `by_id` whose schema cannot be read beside the others, with the reason.
    absent: ids for which the registry has no Avro schema.
    ends: the end offset of each partition before the registry was asked. A record before it with an id of `absent` is a dead letter, because a
        schema is registered before its first record is written. A later record may have a new schema with this id.
    given_up: ids of `absent` that no schema will soon have; later records with them are dead letters, too.
    is_full: whether the registry was asked for too many ids: then every other id is a dead letter too.
    """

    project_schema: str
    by_id: Mapping[int, str] = field(default_factory=dict)
    unusable: Mapping[int, str] = field(default_factory=dict)
    absent: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)
    given_up: frozenset[int] = frozenset()
    is_full: bool = False

    @cached_property
    def usable(self) -> dict[int, str]:
        """The schemas that values are decoded with."""
        return {number: text for number, text in self.by_id.items() if number not in self.unusable}

    @cached_property
    def reader(self) -> str:
        """The reader schema: the fields of all usable versions, each null where the writer lacks it."""
        return reader_schema(list(self.usable.values()), self.project_schema)

    @cached_property
    def _limits(self) -> dict[int, int]:
        """The maximum length of values, by id, for schemas that contain their own type."""
        return {number: limit for number, text in self.usable.items() if (limit := most_bytes(text))}

    def event(self, value: Column) -> Column:
        """The value as a struct of the reader schema, plus IS_READ. All fields are null if it cannot be decoded.

        value: beside the columns partition and offset of its record, if there are absent ids.
        Use the column once: Spark decodes the value again at each mention. Evaluation fails for an id that may be a new schema's.
        """
        # Decodes unused fields too: Avro skips a string without checking its length, and a negative length moves it backwards.
        reader = with_marker(self.reader, IS_READ)
        options = {"mode": "PERMISSIVE", "avroSchema": reader}
        payload = F.substring(value, PREFIX_BYTES + 1, 2**31 - 1)
        decoded = [
            (_has_id(value, [number]) & ~self._is_too_long(value, number), from_avro(payload, text, options))
            for number, text in self.usable.items()
        ]
        unknown = F.raise_error(F.concat(F.lit(_UNKNOWN), _id(value)))
        cases = [*decoded, (self.may_be_new(value), unknown)]
        nothing = from_avro(F.lit(None).cast("binary"), self.project_schema, options)  # a typed null, even if no id is known
        return reduce(lambda branches, case: branches.when(*case), cases[1:], F.when(*cases[0])).otherwise(nothing)

    def reason(self, value: Column, event: Column) -> Column:
        """The reason why a value cannot be used, or null. event: of this value, see `events`."""
        reason = (
            F.when(event[IS_READ], F.lit(None).cast("string"))
            .when(~event[IS_READ], F.concat(F.lit("a text in it is not UTF-8, id "), _id(value)))
            .when(value.isNull() | (F.length(value) == 0), "empty")
            .when(~_has_prefix(value), "not in the Confluent wire format")
            .when(self._is_absent(value), F.concat(F.lit("the registry has no Avro schema of id "), _id(value)))
        )
        for number, why in self.unusable.items():
            reason = reason.when(_has_id(value, [number]), f"the schema of id {number} cannot be used: {why}")
        for number, limit in self._limits.items():
            why = f"longer than {limit:,} bytes, so that it may nest too deep: the schema of id {number} contains its own type"
            reason = reason.when(_has_id(value, [number]) & self._is_too_long(value, number), why)
        if self.is_full:
            many = f"more than {MOST_UNKNOWN_IDS} ids came that the registry does not have, and it was not asked for id "
            reason = reason.when(~_has_id(value, self.by_id), F.concat(F.lit(many), _id(value)))
        return reason.otherwise(F.concat(F.lit("broken, or not what its schema says, id "), _id(value)))

    def _is_absent(self, value: Column) -> Column:
        # Ids are positive, so one with the highest bit set cannot be registered.
        is_never = (F.substring(value, 2, 1) >= F.lit(b"\x80")) | _has_id(value, self.given_up)
        if self.absent <= self.given_up:
            return is_never
        before_end = ((F.col("partition") == partition) & (F.col("offset") < end) for partition, end in self.ends.items())
        return is_never | (_has_id(value, self.absent) & reduce(or_, before_end, F.lit(False)))  # noqa: FBT003

    def may_be_new(self, value: Column) -> Column:
        """Whether the value has the id of a schema that may have been registered since these were fetched."""
        is_known = F.lit(True) if self.is_full else self._is_absent(value) | _has_id(value, self.by_id)  # noqa: FBT003
        return _has_prefix(value) & ~is_known

    def _is_too_long(self, value: Column, number: int) -> Column:
        return F.length(value) > self._limits[number] if number in self._limits else F.lit(False)  # noqa: FBT003


def events(records: DataFrame, schemas: WriterSchemas) -> DataFrame:
    """`records` plus a column `event`, see WriterSchemas.event and IS_READ. Each value is decoded once, however often `event` is used."""
    value = schemas.event(F.col("value"))
    kind = records.select(value.alias("event")).schema["event"].dataType

    def marked(event: Column) -> Column:
        # Spark takes the bytes as they are, and Java writes U+FFFD for those that are not UTF-8: two groups would have one key.
        texts = F.concat_ws(" ", *_texts(event, kind))
        return event.withField(IS_READ, event[IS_READ] & F.is_valid_utf8(texts))

    # Spark does not push filters below a generator. With a plain `select` it would decode once for the filter and once for the result.
    # The mark is made inside, too: outside, a filter on it becomes one on every text, and Spark's constraint propagation doubles that
    # for each text that is selected as a column. Planning the distinct changes took 6 s of CPU time and 0.8 GB of heap; inside, 0.1 s.
    return records.select("*", F.explode(F.transform(F.array(value), marked)).alias("event"))


def encoded(row: Column, schema_id: int, schema: str) -> Column:
    """A struct as a value in the wire format. schema: the schema registered under `schema_id`."""
    return F.concat(F.lit(prefix(schema_id)), to_avro(row, schema))


def prefix(schema_id: int) -> bytes:
    """The bytes before a payload written with schema `schema_id`."""
    return struct.pack(">bI", 0, schema_id)


def schema_ids(values: DataFrame, schemas: WriterSchemas) -> list[int]:
    """The ids of schemas that may be new to `schemas`, the most frequent first, and a few more than may be asked for at most.

    values: columns `value` (binary), `partition` and `offset`.
    """
    counts = values.where(schemas.may_be_new(F.col("value"))).groupBy(_prefix(F.col("value")).alias("prefix")).count()
    prefixes = counts.orderBy(F.desc("count"), "prefix").limit(2 * MOST_UNKNOWN_IDS).collect()
    return [struct.unpack(">bI", row.prefix)[1] for row in prefixes]


def unknown_ids(failure: str) -> set[int]:
    """The unknown schema ids that made a query fail, from its error message; empty if it failed for another reason."""
    return {int(number) for number in re.findall(rf"{re.escape(_UNKNOWN)}(\d+)", failure)}


def _texts(value: Column, kind: T.DataType) -> Iterator[Column]:
    """The texts in a value of that type, strings and arrays of strings."""
    match kind:
        case T.StringType():
            yield value
        case T.StructType():
            for field in kind:
                yield from _texts(value[field.name], field.dataType)
        case T.ArrayType():
            yield F.transform(value, lambda element: F.concat_ws(" ", *_texts(element, kind.elementType)))
        case T.MapType():
            yield from _texts(F.map_keys(value), T.ArrayType(kind.keyType))
            yield from _texts(F.map_values(value), T.ArrayType(kind.valueType))


def _prefix(value: Column) -> Column:
    return F.substring(value, 1, PREFIX_BYTES)


def _has_id(value: Column, ids: Iterable[int]) -> Column:
    return _prefix(value).isin([prefix(number) for number in ids])


def _has_prefix(value: Column) -> Column:
    return (F.length(value) >= PREFIX_BYTES) & (F.substring(value, 1, 1) == F.lit(b"\x00"))


def _id(value: Column) -> Column:
    return F.conv(F.hex(F.substring(value, 2, 4)), 16, 10)
