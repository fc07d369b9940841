"""Streams: sources that need no server, sinks to look at, an aggregation without a window, and a join of two streams."""

import os
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from infrastructure.storage.data_files import data_file
from pipeline.sources.static_tables import fields_of
from workshop.examples.functions import REPORT, REPORTS

CLOUDTRAIL = (
    "Records array<struct<eventTime: timestamp, eventSource: string, eventName: string, awsRegion: string, sourceIPAddress: string, "
    "userIdentity: struct<type: string, userName: string>, errorCode: string>>"
)
ORDERS = ['{"id": 1, "ordered_at": "2026-01-01T12:00:00Z"}', '{"id": 2, "ordered_at": "2026-01-01T12:05:00Z"}']
ORDERS_LATER = ['{"id": 3, "ordered_at": "2026-01-01T15:00:00Z"}', '{"id": 4, "ordered_at": "2026-01-01T15:05:00Z"}']
PAYMENTS = ['{"order": 1, "paid_at": "2026-01-01T12:20:00Z"}', '{"order": 2, "paid_at": "2026-01-01T14:00:00Z"}']
SIGNALS = [
    '{"device_id": "cam-1", "at": "2026-01-01T12:01:00Z", "signal": 80}',
    '{"device_id": "cam-1", "at": "2026-01-01T12:07:00Z", "signal": 60}',
    '{"device_id": "cam-1", "at": "2026-01-01T12:12:00Z", "signal": 40}',
]
PAYMENTS_LATER = ['{"order": 3, "paid_at": "2026-01-01T15:10:00Z"}']
LOG = [
    "2026-01-01 09:59:58,120 INFO  [main] Server: started",
    "2026-01-01 10:00:07,044 ERROR [worker-1] Client: no route to host",
    "2026-01-01 10:00:07,044 ERROR [worker-1] Client: no route to host",
    "2026-01-01 10:31:00,003 ERROR [worker-2] Client: timed out",
]


def json_stream(spark: SparkSession, landing: Path, schema: str, files: Sequence[str]) -> DataFrame:
    """A stream of JSON documents, one per line, by Spark's own source of files: a new file is new data, and one file is one batch here.

    A line that is not JSON becomes a row of nulls. The project's own source of files, see docs/files.md, keeps it as a dead letter.
    """
    landing.mkdir()
    for number, documents in enumerate(files):
        land(landing, number, documents)
    return spark.readStream.schema(fields_of(schema)).option("maxFilesPerTrigger", 1).json(str(landing))


def land(landing: Path, number: int, documents: str) -> None:
    """A file that arrives whole: Spark ignores a name that begins with an underscore."""
    file = landing / f"_{number}.json"
    file.write_text(f"{documents}\n")
    os.utime(file, (number, number))  # Spark takes the oldest first
    file.rename(landing / f"{number}.json")


def folder_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The reports of the cameras as a stream."""
    return json_stream(spark, folder / "landing", REPORT, REPORTS)


def memory_sink(spark: SparkSession, folder: Path) -> DataFrame:
    """A table in the driver's memory, named after the query, which SQL asks while the query runs: here before the last file arrives, and after."""
    stream = json_stream(spark, folder / "landing", REPORT, REPORTS[:2]).select("device_id", "battery")
    query = stream.writeStream.format("memory").queryName("batteries").start()
    answers = []
    try:
        for arriving in (None, REPORTS[2]):
            if arriving:
                land(folder / "landing", 2, arriving)
            query.processAllAvailable()
            answers += spark.sql("select count(*) as reports, min(battery) as lowest from batteries").collect()
    finally:
        query.stop()
    return spark.createDataFrame(answers)


def foreach(spark: SparkSession, folder: Path) -> DataFrame:
    """A function of your own for each row, in Python, beside each task. A batch may run again, so what it does must be safe to do twice."""
    out = folder / "out"
    out.mkdir()
    stream = folder_stream(spark, folder).select("device_id", "battery")
    write = _FilePerDevice(out)
    stream.writeStream.foreach(write).trigger(availableNow=True).start().awaitTermination()
    return spark.createDataFrame([(file.name, file.read_text()) for file in sorted(out.iterdir())], "file string, text string")


class _FilePerDevice:
    """Spark pickles it, and calls open and close around the rows of each partition of each batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, partition: int, batch: int) -> bool:
        """Whether to go on with this partition. Do not skip by these numbers: a batch that runs again may divide its rows otherwise."""
        return True

    def process(self, row: Row) -> None:
        """Writes the row: twice leaves the same file."""
        (self._folder / row.device_id).write_text(f"{row.battery} %")

    def close(self, error: Exception | None) -> None:
        """For what `open` has opened."""


def jdbc(spark: SparkSession, folder: Path) -> DataFrame:
    """A table of a database, by JDBC: each batch of a stream overwrites it, and a batch reads it. A batch that runs again writes the same table.

    The database is Derby, which Spark includes.
    """
    spark.sparkContext._jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))  # type: ignore[union-attr]
    table = {"url": f"jdbc:derby:{folder / 'database'};create=true", "dbtable": "reports"}

    def write(counts: DataFrame, _: int) -> None:
        counts.write.format("jdbc").options(**table).mode("overwrite").save()

    counts = folder_stream(spark, folder).groupBy("zip_code").count()
    counts.writeStream.foreachBatch(write).outputMode("complete").trigger(availableNow=True).start().awaitTermination()
    return spark.read.format("jdbc").options(**table).load().orderBy("zip_code")


def console_sink(spark: SparkSession, folder: Path) -> None:
    """The rows of each batch on standard output. One file is one batch here."""
    stream = folder_stream(spark, folder).select("device_id", "zip_code")
    stream.writeStream.format("console").trigger(availableNow=True).start().awaitTermination()


def running_aggregation(spark: SparkSession, folder: Path) -> DataFrame:
    """A count without a window: mode complete writes every group in every batch. State grows with the groups, forever."""
    counts = folder_stream(spark, folder).groupBy("zip_code").count()
    return _all_of(counts, "counts", "complete").orderBy("zip_code")


def sliding_window(spark: SparkSession, folder: Path) -> DataFrame:
    """An average per device over ten minutes, with a new window every five: each event is in two of them."""
    signals = json_stream(spark, folder / "landing", "device_id string, at timestamp, signal int", SIGNALS)
    windows = signals.groupBy("device_id", F.window("at", "10 minutes", "5 minutes"))
    return _all_of(windows.agg(F.avg("signal").alias("signal")), "signals", "complete").orderBy("window")


def sql_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream as a view, which SQL reads: the answer is a stream, too."""
    folder_stream(spark, folder).createOrReplaceTempView("reports")
    hourly = spark.sql("select window(event.start, '1 hour').start as hour, count(*) as reports from reports group by 1")
    return _all_of(hourly, "hourly", "complete").orderBy("hour")


def stream_stream_join(spark: SparkSession, folder: Path) -> DataFrame:
    """Orders with their payments, two streams: by key, and by a bound on the time between both. The left join keeps orders that nobody has paid in time.

    Both sides stay in the state until they can have no partner any more. That takes two watermarks and the bound; without them, state grows
    forever, and Spark refuses the left join. An order without payment comes only then, when the slower of both watermarks has passed.
    """
    orders = json_stream(spark, folder / "orders", "id int, ordered_at timestamp", ["\n".join(ORDERS), "\n".join(ORDERS_LATER)])
    payments = json_stream(spark, folder / "payments", "order int, paid_at timestamp", ["\n".join(PAYMENTS), "\n".join(PAYMENTS_LATER)])
    in_time = F.expr("id = order and paid_at between ordered_at and ordered_at + interval 1 hour")
    joined = orders.withWatermark("ordered_at", "10 minutes").join(payments.withWatermark("paid_at", "20 minutes"), in_time, how="left")
    return _all_of(joined.select("id", "ordered_at", "paid_at"), "paid", "append").orderBy("id")


def _all_of(stream: DataFrame, name: str, mode: str) -> DataFrame:
    """What the stream writes for the files that are there."""
    stream.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True).start().awaitTermination()
    return stream.sparkSession.table(name)


def logs(spark: SparkSession, folder: Path) -> DataFrame:
    """Lines of Log4j, taken apart, without repetitions, as Parquet by date; then the errors of half an hour, counted in the files."""
    landing, parquet = folder / "landing", str(folder / "parquet")
    landing.mkdir()
    (landing / "app.log").write_text("\n".join(LOG))
    pattern = r"^(\S+ \S+),\d+ (\w+) +\[(.*?)\] (.*)$"
    names = ("time", "level", "thread", "message")
    parts = {name: F.regexp_extract("value", pattern, group) for group, name in enumerate(names, start=1)}
    lines = spark.readStream.text(str(landing)).select(*(part.alias(name) for name, part in parts.items()))
    timed = lines.withColumn("time", F.to_timestamp("time")).withWatermark("time", "10 minutes")
    rows = timed.dropDuplicates(list(names)).withColumn("date", F.to_date("time"))
    write_parquet(rows, folder).trigger(availableNow=True).start().awaitTermination()
    errors = spark.read.parquet(parquet).where("level = 'ERROR' and time >= '2026-01-01 10:00' and time < '2026-01-01 10:30'")
    return errors.groupBy("date", "message").count()


def write_parquet(rows: DataFrame, folder: Path) -> DataStreamWriter:
    """A writer of `rows` as Parquet, a folder for each date. The checkpoint lets a restart go on, and readers see whole batches only."""
    return (
        rows.writeStream.partitionBy("date")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .format("parquet")
        .option("path", str(folder / "parquet"))
    )


def cloudtrail(spark: SparkSession, folder: Path) -> DataFrame:
    """Events in an array of one large object per file, as AWS CloudTrail delivers them: each becomes a row of Parquet by date, which is asked while the query runs.

    For real logs, read `s3a://BUCKET/AWSLogs/*/CloudTrail/*/*/*/*/*.json.gz`: Spark unpacks gzip, and takes patterns in the path. A trigger of 10 seconds
    makes fewer and larger files than one of a second.
    """
    landing = folder / "trail"
    landing.mkdir()
    (landing / "events.json").write_bytes(data_file("examples/cloudtrail.json").read_bytes())
    options = {"multiLine": True, "maxFilesPerTrigger": 100, "latestFirst": True}
    files = spark.readStream.schema(fields_of(CLOUDTRAIL)).options(**options).json(str(landing))
    events = files.select(F.explode("Records").alias("event")).select("event.*").withColumn("date", F.to_date("eventTime"))
    query = write_parquet(events, folder).trigger(processingTime="1 second").start()
    try:
        query.processAllAvailable()
        events_so_far = spark.read.parquet(str(folder / "parquet"))
        counted = events_so_far.groupBy("date", "eventSource").agg(F.count("*").alias("events"), F.count("errorCode").alias("failed"))
        return spark.createDataFrame(counted.orderBy("date", "eventSource").collect(), counted.schema)
    finally:
        query.stop()
