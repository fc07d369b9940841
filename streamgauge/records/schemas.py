"""The schema that the values of a topic have in Spark: of JSON the columns that `ingest` gives a new table, of Avro the type by each writer's schema."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.avro.functions import from_avro

from infrastructure.registry.avro_reader import schema_id_of
from infrastructure.text import escaped
from pipeline.formats.avro_schemas import without_new_types
from pipeline.ingest.json_types import check_size, widened
from pipeline.ingest.records import observed_type, unrounded_type, usable
from pipeline.spark.errors import SparkFailure, first_line
from streamgauge.records.decoding import Decoder


class Schemas:
    """The schemas of `values`, as Spark finds them.

    folder: for the values that are no Avro, until Spark has read them. Raises RegistryUnavailable when a schema must be fetched and the registry
    does not answer; AmbiguousNames and TooManyFields as `ingest`.
    """

    def __init__(self, values: Iterable[bytes | None], decoder: Decoder, spark: SparkSession, folder: Path) -> None:
        self._decoder, self._spark = decoder, spark
        self._avro: Counter[int] = Counter()
        nulls = other_values = 0
        file = folder / "values"  # a topic may be larger than the memory
        with file.open("wb") as lines:
            for value in values:
                if value is None:
                    nulls += 1
                elif (schema_id := schema_id_of(value)) is not None and decoder.knows(schema_id):
                    self._avro[schema_id] += 1
                else:
                    lines.write(b64encode(value) + b"\n")
                    other_values += 1
        self._columns, objects = T.StructType(), 0
        self._kept_as_text: dict[str, str] = {}
        if other_values:
            documents = _documents(spark.read.text(str(file)).select(F.unbase64("value").alias("value"))).cache()
            if objects := documents.count():
                observed = observed_type(documents) or T.StructType()
                self._columns = widened(self._columns, observed, self._kept_as_text, unrounded_type(documents))
                check_size(self._columns)
        self._counts = {"avro": self._avro.total(), "json": objects, "null": nulls, "other": other_values - objects}

    def as_text(self) -> str:
        """How many values there are of each kind, and each schema, with Spark's type as `printSchema` prints it."""
        counts = {f"Avro by schema {number}": count for number, count in sorted(self._avro.items())}
        counts |= {"JSON objects": self._counts["json"], "other bytes": self._counts["other"], "null": self._counts["null"]}
        lines = [", ".join(f"{kind}: {count:,}" for kind, count in counts.items() if count) or "no records"]
        for number in sorted(self._avro):
            written, in_spark = json.dumps(self._schema(number), indent=2, ensure_ascii=False), self._type(number)
            lines += ["", f"schema {number}:", *written.split("\n"), "in Spark:"]
            lines += [in_spark] if isinstance(in_spark, str) else _tree(in_spark)
        if self._counts["json"]:
            lines += ["", "JSON, as the columns of `streamgauge ingest`:", *_tree(self._columns)]
            lines += [f"kept as JSON text: {path} ({why})" for path, why in self._kept_as_text.items()]
        return "\n".join(map(escaped, lines))

    def as_json(self) -> str:
        """The same as one object. spark: a type as `StructType.fromJson` reads it, or null, and then `problem`."""
        described = {
            "records": self._counts,
            "avro": [self._described(number, count) for number, count in sorted(self._avro.items())],
            "json": {"spark": self._columns.jsonValue(), "kept_as_text": self._kept_as_text} if self._counts["json"] else None,
        }
        return escaped(orjson.dumps(described).decode())

    def _described(self, number: int, count: int) -> dict[str, Any]:
        in_spark = self._type(number)
        of_spark = {"spark": None, "problem": in_spark} if isinstance(in_spark, str) else {"spark": in_spark.jsonValue()}
        return {"schema_id": number, "records": count, "schema": self._schema(number), **of_spark}

    def _schema(self, number: int) -> Any:  # noqa: ANN401 - a schema of Avro
        return json.loads(self._decoder.reader.schema(number))

    def _type(self, number: int) -> T.DataType | str:
        """The type, or why Spark cannot read it."""
        written = json.dumps(without_new_types(self._schema(number)))
        try:
            return self._spark.range(1).select(from_avro(F.lit(None).cast("binary"), written).alias("value")).schema["value"].dataType
        except SparkFailure as error:
            return f"not readable: {first_line(error)}"


def _documents(values: DataFrame) -> DataFrame:
    """The JSON objects among `values` that `ingest` would use, in a column `document`. The key, place and times that it needs of a record are invented."""
    times = dict.fromkeys(("timestamp", "clock"), F.timestamp_millis(F.lit(0)))
    return usable(values.withColumns({"key": F.lit(b"key"), "partition": F.lit(0), "offset": F.lit(0), **times})).select("document")


def _tree(kind: T.DataType) -> list[str]:
    return kind.treeString().rstrip().split("\n") if isinstance(kind, T.StructType) else [kind.simpleString()]
