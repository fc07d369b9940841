"""Reads a query's state from its checkpoint, with Spark's state data sources `state-metadata` and `statestore`.

The state of a committed batch is a set of files that never change. They are read while the query runs: without a lock, without a copy,
and without writing to the checkpoint. Spark deletes them about a hundred batches later; a read that is overtaken by that fails with one line.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import orjson
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import REAL_TIME, CheckpointName
from infrastructure.errors import StreamgaugeError
from infrastructure.output.row_formats import Rows
from infrastructure.settings import Settings
from infrastructure.storage.paths import names_in
from infrastructure.storage.removal import bytes_on_disk
from pipeline.spark.errors import spark_errors
from pipeline.spark.session import MOST_ROWS, REAL_TIME_CONFIG

MAX_FULLEST = 3
_SOURCE_COLUMNS = {"key", "partition_id", "batch_id", "change_type"}
_FAILED = "Spark cannot read the state"
_JSON = {"ignoreNullFields": "false"}


@dataclass(frozen=True)
class Part:
    """A table of the state: that of a stateful operator, or of one variable of a transformWithState. name, store: as Spark calls them."""

    operator: int
    name: str
    store: str
    variable: str | None = None
    has_timers: bool = False

    @property
    def label(self) -> str:
        return self.name if self.variable is None else f"{self.name}.{self.variable}"


def readable_batches(name: CheckpointName, settings: Settings, wanted: Sequence[int]) -> list[int]:
    """The batches of a checkpoint whose state can be read, in order; at least one.

    Raises StreamgaugeError when the query has not run, keeps no state, or the state of a batch in `wanted` does not exist.
    """
    folder = name.folder(settings)
    batches = Checkpoint(folder).committed
    if not batches:
        msg = f"no state of {name}: it has not finished a batch with STREAMGAUGE_HOME {settings.home}; start it with `streamgauge run {name.query}`"
        raise StreamgaugeError(msg)
    if not names_in(folder / "state"):
        msg = f"{name.query} keeps no state: it handles each record by itself, without aggregation, deduplication or sessions"
        raise StreamgaugeError(msg)
    if lacking := [batch for batch in wanted if batch not in batches]:
        msg = f"no state of {name.query} after batch {lacking[0]}; that of batches {batches[0]} to {batches[-1]} can be read"
        raise StreamgaugeError(msg)
    return batches


class State:
    """The state in `checkpoint`, which has a committed batch.

    Rows have structs as dictionaries. keys: texts that must each equal a field of a row's key. limit: the number of rows to return at most.
    Every method raises StreamgaugeError when Spark cannot read the state, for example because its files have been deleted meanwhile.
    """

    def __init__(self, spark: SparkSession, checkpoint: Checkpoint) -> None:
        self._spark, self._folder = spark.newSession(), checkpoint.folder
        name = CheckpointName.of(checkpoint.folder.name)
        # In real-time mode, the files of the state have other names, which Spark takes from its settings and not from the checkpoint.
        for setting, value in REAL_TIME_CONFIG.items() if name is not None and name.mode == REAL_TIME else ():
            self._spark.conf.set(setting, value)
        _ = self._spark.streams  # starts Spark's coordinator of state stores, which the first streaming query starts otherwise

    def parts(self) -> list[Part]:
        """The parts, by operator."""
        with spark_errors(_FAILED):
            metadata = self._spark.read.format("state-metadata").load(str(self._folder)).orderBy("operatorId", "stateStoreName").collect()
        return [part for row in metadata for part in _parts(row)]

    def overview(self, batch: int) -> Rows:
        """A row for each part of the state after `batch`.

        bytes_on_disk: of its operator, in all batches that are kept. key: the fields of the key. fullest: the keys with the most rows, each
        without its times and windows; empty if no key has a second row.
        """
        columns = ["operator", "state", "batch", "rows", "bytes_on_disk", "key", "fullest"]
        return Rows(columns, [[part.operator, part.label, batch, *self._summary(part, batch)] for part in self.parts()])

    def rows(self, batch: int, keys: Sequence[str], limit: int) -> Rows:
        """The rows after `batch`, by key."""
        return self._view(["key", "value"], lambda part: self._read(part, batchId=batch), self.parts(), keys, limit)

    def changes(self, batches: tuple[int, int], keys: Sequence[str], limit: int) -> Rows:
        """The changes by the batches from the first to the last one, in their order. change: update, append (to a list) or delete."""
        options = {"readChangeFeed": True, "changeStartBatchId": batches[0], "changeEndBatchId": batches[1]}
        columns = ["batch", "change", "key", "value"]
        return self._view(columns, lambda part: self._read(part, **options), self.parts(), keys, limit)

    def timers(self, batch: int, keys: Sequence[str], limit: int) -> Rows:
        """The pending timers after `batch`, the next one first."""

        def read(part: Part) -> DataFrame:
            reader = self._spark.read.format("statestore").options(operatorId=part.operator, batchId=batch, readRegisteredTimers=True)
            due = F.date_format(F.timestamp_millis("expiration_timestamp_ms"), "yyyy-MM-dd'T'HH:mm:ss.SSSX").alias("due")
            return reader.load(str(self._folder)).select(due, "key")

        one_per_operator = {part.operator: part for part in self.parts() if part.has_timers}
        return self._view(["due", "key"], read, list(one_per_operator.values()), keys, limit)

    def _view(self, columns: list[str], read: Callable[[Part], DataFrame], parts: Sequence[Part], keys: Sequence[str], limit: int) -> Rows:
        all_rows: list[list[Any]] = []
        for part in parts:
            with spark_errors(_FAILED):
                rows = _collected(_matching(read(part), keys), limit + 1)
            all_rows += [[part.operator, part.label, *row] for row in rows]
        return Rows(["operator", "state", *columns], all_rows[:limit], is_cut=len(all_rows) > limit)

    def _summary(self, part: Part, batch: int) -> list[Any]:
        with spark_errors(_FAILED):
            rows = self._read(part, batchId=batch)
            leaves = _leaves(rows.schema["key"].dataType, F.col("key"))
            of_key = [leaf.alias(name) for name, leaf, kind in leaves if not isinstance(kind, T.TimestampType | T.DateType)]
            counted = rows.groupBy(F.struct(*of_key).alias("key")).count().withColumn("all", F.sum("count").over(Window.partitionBy()))
            key = F.to_json("key", _JSON).alias("key")
            largest = counted.select(key, "count", "all").orderBy(F.desc("count"), "key").limit(MAX_FULLEST).collect()
        fullest = [{**orjson.loads(row["key"]), "rows": row["count"]} for row in largest if of_key and row["count"] > 1]
        size = bytes_on_disk(self._folder / "state" / str(part.operator))
        return [largest[0]["all"] if largest else 0, size, [name for name, _, _ in leaves], fullest]

    def _read(self, part: Part, **options: str | int | bool) -> DataFrame:
        """Columns key and value, after batch and change if the options ask for changes. The fields of structs have distinct names."""
        reader = self._spark.read.format("statestore").options(operatorId=part.operator, storeName=part.store, **options)
        if part.variable is not None:
            reader = reader.option("stateVarName", part.variable)
        rows = reader.load(str(self._folder))
        values = [name for name in rows.columns if name not in _SOURCE_COLUMNS]
        value = F.col("value") if values == ["value"] else F.struct(*values)
        changed = [F.col("batch_id").alias("batch"), F.col("change_type").alias("change")] if "batch_id" in rows.columns else []
        rows = rows.select(*changed, "key", value.alias("value"))
        return rows.withColumns({name: F.col(name).cast(_distinct(rows.schema[name].dataType)) for name in ("key", "value")})


def _parts(row: T.Row) -> Iterator[Part]:
    part = Part(row["operatorId"], row["operatorName"], row["stateStoreName"])
    names = [variable["stateName"] for variable in json.loads(row["operatorProperties"] or "{}").get("stateVariables", [])]
    has_timers = any(name.startswith(("$eventTimers", "$procTimers")) for name in names)
    variables = sorted(name for name in names if not name.startswith("$"))  # those of Spark begin with $: timers, indexes of times to live
    yield from (replace(part, variable=name, has_timers=has_timers) for name in variables) if names else (part,)


def _matching(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    leaves = _leaves(rows.schema["key"].dataType, F.col("key"))
    for text in keys:
        moment = F.try_to_timestamp(F.lit(text))
        conditions = [leaf == moment if isinstance(kind, T.TimestampType) else leaf.cast("string") == text for _, leaf, kind in leaves]
        rows = rows.where(reduce(Column.__or__, (F.coalesce(condition, F.lit(False)) for condition in conditions)))  # noqa: FBT003
    return rows


def _collected(rows: DataFrame, limit: int) -> list[list[Any]]:
    """At most `limit` rows, in order of their columns."""
    order = [name for name in rows.columns if name != "value"]  # a value may hold a map, which has no order
    collected = rows.withColumn("row", F.to_json(F.struct("*"), _JSON)).orderBy(*order, "row").limit(min(limit, MOST_ROWS)).collect()
    return [list(orjson.loads(row["row"]).values()) for row in collected]


def _leaves(kind: T.DataType, column: Column, name: str = "") -> list[tuple[str, Column, T.DataType]]:
    """The fields of a struct that are no structs: name with dots, column and type."""
    if not isinstance(kind, T.StructType):
        return [(name, column, kind)]
    return [leaf for field in kind for leaf in _leaves(field.dataType, column.getField(field.name), f"{name}.{field.name}".lstrip("."))]


def _distinct(kind: T.DataType) -> T.DataType:
    """The type with distinct names. Spark names the fields of an aggregation's state by function: three sums are `sum`, `sum` and `sum`."""
    if not isinstance(kind, T.StructType):
        return kind
    names = [field.name for field in kind]
    numbers = [names[: index + 1].count(name) for index, name in enumerate(names)]
    distinct = [name if number == 1 else f"{name}_{number}" for name, number in zip(names, numbers, strict=True)]
    return T.StructType([T.StructField(name, _distinct(field.dataType)) for name, field in zip(distinct, kind, strict=True)])
