"""Formats: files of other kinds, and a source in Python."""

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from workshop.examples.functions import reports


def orc(spark: SparkSession, folder: Path) -> DataFrame:
    """ORC: columns with their types, nested ones too, partitioned by folder."""
    reports(spark).write.partitionBy("zip_code").orc(str(folder / "orc"))
    return spark.read.orc(str(folder / "orc")).where("zip_code = 94107").select("device_id", "event.zones").orderBy("device_id")


def csv(spark: SparkSession, folder: Path) -> DataFrame:
    """CSV: text only, so nested columns must be flattened first, and the reader states the types."""
    flat = reports(spark).select("device_id", "battery", "event.start").coalesce(1)
    flat.write.option("header", True).csv(str(folder / "csv"))  # noqa: FBT003
    (file,) = (folder / "csv").glob("*.csv")
    return spark.read.text(str(file))


def avro(spark: SparkSession, folder: Path) -> DataFrame:
    """Avro: whole rows, one after the other, with the schema in the file."""
    reports(spark).write.format("avro").save(str(folder / "avro"))
    return spark.read.format("avro").load(str(folder / "avro")).orderBy("device_id")


def xml(spark: SparkSession, folder: Path) -> DataFrame:
    """XML: the element `rowTag` is a row, an attribute a column with an underscore, and an element that repeats an array."""
    file = folder / "reports.xml"
    file.write_text(
        '<reports><report id="cam-1"><battery>81</battery><zone>door</zone><zone>garden</zone></report><report id="cam-2"/></reports>'
    )
    return spark.read.xml(str(file), rowTag="report", schema="_id string, battery int, zone array<string>")


def text(spark: SparkSession, folder: Path) -> DataFrame:
    """Text: a line is a row, for a function to take apart. Option wholetext makes a file a row."""
    (folder / "app.log").write_text("10:00:01 INFO started\n10:00:07 ERROR no route to host\n")
    return spark.read.text(str(folder / "app.log")).select(F.split("value", " ", 3).alias("parts"))


class _SquaresReader(DataSourceReader):
    def __init__(self, count: int) -> None:
        self._count = count

    def read(self, partition: object) -> Iterator[tuple[int, int]]:
        return ((number, number * number) for number in range(self._count))


class Squares(DataSource):
    """Numbers and their squares. Option count: how many."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "squares"

    def schema(self) -> str:
        """The columns."""
        return "number int, square int"

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader, which runs on the executors."""
        return _SquaresReader(int(self.options["count"]))


def python_data_source(spark: SparkSession, _: Path) -> DataFrame:
    """A source written in Python: for an API or a format that no connector reads. Rows pass through Python, so it is slow."""
    spark.dataSource.register(Squares)
    return spark.read.format("squares").option("count", 3).load()
