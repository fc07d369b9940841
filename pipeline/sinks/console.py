"""For teaching: prints a query's results instead of writing them."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from infrastructure.settings import Settings
from pipeline.sinks.sink import Sink

MAX_ROWS = 200


@dataclass(frozen=True)
class Console(Sink):
    """Prints the rows of each non-empty batch, at most MAX_ROWS, ordered by window if they have one."""

    name: str

    @property
    def place(self) -> str:
        return "the console"

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:  # noqa: ARG002 - as every sink
        return rows.writeStream.foreachBatch(self._print)

    def _print(self, batch: DataFrame, number: int) -> None:
        rows = batch.persist()
        if not rows.isEmpty():
            print(f"{self.name}, batch {number}")  # noqa: T201 - what this is for
            in_order = rows.orderBy(*rows.columns[rows.columns.index("window") :: -1]) if "window" in rows.columns else rows
            in_order.show(MAX_ROWS, truncate=False)
        rows.unpersist()
