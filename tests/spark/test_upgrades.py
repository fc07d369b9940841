"""What may change in a query that goes on from its checkpoint, on `nest-camera-stats`: the table of docs/upgrades.md."""

from dataclasses import replace
from functools import partial

import pytest
import streaming
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812
from streaming import Record, Stream, at

from infrastructure.settings import Settings
from pipeline.domains import nest
from pipeline.domains.nest_documents import sightings
from pipeline.monitoring.failures import Remedy, diagnosis
from pipeline.sources.watermarks import Watermark

BY_NAME = {query.name: query for query in nest.queries(Settings())}
CAMERA_STATS = BY_NAME["nest-camera-stats"]


def seen(camera, time):
    event = {"has_person": True, "start_time": at(time).isoformat()}
    return Record({"devices": {"cameras": {camera: {"device_id": camera, "last_event": event}}}}, timestamp=at("12:00"))


def counts(rows):
    return {(row["window"]["start"][11:16], row["window"]["end"][11:16]): row["count"] for row in rows}


def stats(seen, locations, *, key=("device_id", "start_time"), by=(), length="1 hour", more=()):
    """`camera_stats`, with what may change about it."""
    once = seen.dropDuplicates(list(key)) if key else seen
    located = once.join(F.broadcast(locations), "device_id", how="left")
    zip_code = F.coalesce("zip_code", F.lit("unknown")).alias("zip_code")
    return located.groupBy(zip_code, *by, F.window("start_time", length)).agg(F.count("*").alias("count"), *more)


@pytest.fixture
def counting(stream):
    """The stream after its first run, which has counted two cameras."""
    return counted_two(stream(CAMERA_STATS))


@pytest.fixture(scope="module")
def refusing(spark, tmp_path_factory):
    """As `counting`, for changes that are refused: they leave the checkpoint as it is."""
    return counted_two(Stream(spark, CAMERA_STATS, tmp_path_factory.mktemp("stream")))


def counted_two(running):
    running.run([seen("a", "10:10"), seen("b", "10:11")])
    return running


def without(camera):
    return lambda records: CAMERA_STATS.decode(records).where(F.col("device_id") != camera)


def test_what_keeps_the_state_as_it_is_continues(counting):
    counting.change(trigger_seconds=5, transform=stats)
    counting.run([seen("c", "10:12")])
    assert counts(counting.table) == {("10:00", "11:00"): 3}, "another way to the same rows"
    counting.change(decode=without("d"))
    counting.run([seen("d", "10:13"), seen("e", "10:14")])
    assert counts(counting.table) == {("10:00", "11:00"): 4}, "a filter in front of the aggregation"
    counting.change(decode=without("a"))
    counting.run([seen("f", "10:15")])
    assert counts(counting.table) == {("10:00", "11:00"): 5}, "what the old filter let through stays counted"
    counting.change(decode=partial(sightings, future="3 hours"))
    counting.run([seen("g", "14:00")])
    assert counts(counting.table) == {("10:00", "11:00"): 5, ("14:00", "15:00"): 1}, "another bound of the future"


def test_a_longer_delay_moves_no_watermark_back(counting):
    (before,) = counting.run([seen("c", "11:30")])
    counting.change(watermark=Watermark("start_time", delay="2 hours"))
    (after,) = counting.run([seen("d", "11:31"), seen("e", "11:10")])
    assert before.watermark == after.watermark == at("11:20")
    assert after.dropped == 1


def test_events_stay_where_an_old_static_table_put_them(stream, tmp_path):
    def located(zip_code):
        file = tmp_path / f"{zip_code}.csv"
        file.write_text(f"device_id,zip_code\na,{zip_code}\n")
        return Settings(static_tables=f"device_locations={file}")

    running = stream(CAMERA_STATS, settings=located("11111"))
    running.run([seen("a", "10:10")])
    running.change(located("22222"))
    running.run([seen("a", "10:11")])
    assert {row["zip_code"]: row["count"] for row in running.table} == {"11111": 1, "22222": 1}


def test_the_number_of_state_partitions_is_that_of_the_first_run(counting, monkeypatch):
    monkeypatch.setitem(streaming._CONFIG, "spark.sql.shuffle.partitions", "3")
    counting.run([seen(f"camera-{number}", "10:12") for number in range(9)])
    assert counts(counting.table) == {("10:00", "11:00"): 11}
    assert sorted(path.name for path in (counting.checkpoint / "state" / "1").iterdir() if path.name.isdigit()) == ["0"]


def test_columns_of_an_archive_come_and_go(stream):
    running = stream(BY_NAME["nest-archive"])
    running.run([seen("a", "10:10")])
    running.change(transform=lambda cameras: cameras.select("device_id", F.lit(1).alias("more")))
    (last,) = running.run([seen("b", "10:11")])
    assert last.rows == [{"device_id": "b", "more": 1}]


def test_another_window_length_is_not_detected_and_the_table_holds_both_kinds(counting):
    counting.change(transform=partial(stats, length="30 minutes"))
    counting.run([seen("c", "10:12")])
    assert counts(counting.table) == {("10:00", "11:00"): 2, ("10:00", "10:30"): 1}


@pytest.mark.parametrize(
    "transform",
    [
        pytest.param(partial(stats, by=("device_id",)), id="the grouping"),
        pytest.param(lambda seen, locations: stats(seen, locations, more=(F.max("start_time").alias("last"),)), id="the aggregates"),
        pytest.param(partial(stats, key=("device_id",)), id="the columns of dropDuplicates"),
        pytest.param(partial(stats, key=()), id="a stateful step less"),
        pytest.param(lambda seen, locations: stats(seen.dropDuplicates(["device_id", "start_time"]), locations), id="a stateful step more"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_with_the_two_ways_out_and_nothing_is_written(refusing, transform):
    refusing.change(transform=transform)
    with pytest.raises(StreamingQueryException) as refused:
        refusing.run([seen("c", "10:12")])
    assert counts(refusing.table) == {("10:00", "11:00"): 2}
    told = diagnosis(str(refused.value), CAMERA_STATS.checkpoint_name.place(Settings()), Settings())
    assert told.remedy is Remedy.PERSON
    assert told.cause.startswith("the query has changed, and the state in ")
    assert "raise its version" in told.cause
    assert "streamgauge reset nest-camera-stats" in told.cause


def test_another_name_mode_or_version_has_a_checkpoint_of_its_own():
    others = [replace(CAMERA_STATS, **change) for change in ({"name": "other"}, {"mode": "complete"}, {"version": 2})]
    assert len({str(query.checkpoint_name) for query in (CAMERA_STATS, *others)}) == 4
