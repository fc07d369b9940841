"""The schema that the values of a topic have in Spark: of JSON the columns that `ingest` gives a new table, of Avro the type by each writer's schema."""

import json
from collections import Counter
from typing import Any

import orjson
from pyspark.sql import types as T  # noqa: N812

from contract.registry.avro_reader import schema_id_of
from contract.text import escaped
from pipeline.formats.avro_schemas import UnusableSchemaError
from pipeline.formats.avro_types import spark_type
from pipeline.ingest.document_type import DocumentType
from streamgauge.records.decoding import Decoder

_JSON, _NULL, _OTHER = "JSON objects", "null", "other bytes"


class Schemas:
    """The schemas of the values that were added."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._documents = DocumentType()
        self._counts: Counter[str] = Counter()
        self._avro: Counter[int] = Counter()

    def add(self, value: bytes | None) -> None:
        """Adds the value of a record. Raises RegistryUnavailable when a schema must be fetched and the registry does not answer."""
        if value is None:
            self._counts[_NULL] += 1
        elif (schema_id := schema_id_of(value)) is not None and self._decoder.knows(schema_id):
            self._avro[schema_id] += 1
        else:
            self._counts[_JSON if self._documents.add(value) else _OTHER] += 1

    def as_text(self) -> str:
        """How many values there are of each kind, and each schema, with Spark's type as `printSchema` prints it."""
        counts = {**{f"Avro by schema {number}": count for number, count in sorted(self._avro.items())}, **self._counts}
        lines = [", ".join(f"{what}: {count:,}" for what, count in counts.items()) or "no records"]
        for number in sorted(self._avro):
            written, in_spark = json.dumps(self._schema(number), indent=2, ensure_ascii=False), self._type(number)
            lines += ["", f"schema {number}:", *written.split("\n"), "in Spark:"]
            lines += [in_spark] if isinstance(in_spark, str) else _tree(in_spark)
        if self._counts[_JSON]:
            columns, kept_as_text = self._documents.columns()
            lines += ["", "JSON, as the columns of `streamgauge ingest`:", *_tree(columns)]
            lines += [f"kept as JSON text: {path} ({why})" for path, why in kept_as_text.items()]
        return "\n".join(map(escaped, lines))

    def as_json(self) -> str:
        """The same as one object. spark: a type as `StructType.fromJson` reads it, or null, and then `problem`."""
        columns, kept_as_text = self._documents.columns()
        found = {
            "records": {
                "avro": self._avro.total(),
                "json": self._counts[_JSON],
                "null": self._counts[_NULL],
                "other": self._counts[_OTHER],
            },
            "avro": [self._described(number, count) for number, count in sorted(self._avro.items())],
            "json": {"spark": columns.jsonValue(), "kept_as_text": kept_as_text} if self._counts[_JSON] else None,
        }
        return escaped(orjson.dumps(found).decode())

    def _described(self, number: int, count: int) -> dict[str, Any]:
        in_spark = self._type(number)
        of_spark = {"spark": None, "problem": in_spark} if isinstance(in_spark, str) else {"spark": in_spark.jsonValue()}
        return {"schema_id": number, "records": count, "schema": self._schema(number), **of_spark}

    def _schema(self, number: int) -> Any:  # noqa: ANN401 - a schema of Avro
        return json.loads(self._decoder.reader.schema(number))

    def _type(self, number: int) -> T.DataType | str:
        """The type, or why Spark cannot read it."""
        try:
            return spark_type(self._decoder.reader.schema(number))
        except UnusableSchemaError as error:
            return f"not readable: {error}"


def _tree(kind: T.DataType) -> list[str]:
    return kind.treeString().rstrip().split("\n") if isinstance(kind, T.StructType) else [kind.simpleString()]
