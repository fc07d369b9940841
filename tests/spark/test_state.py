"""A look inside the state of a query: of deduplications and aggregations."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from streaming import Record, Stream, at

from contract.checkpoints.contents import Checkpoint
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.checkpoint.state import State
from pipeline.domains import nest, taxi

OPERATORS = {"dedupe": 1, "stateStoreSave": 0}


def seen(camera, time):
    event = {"has_person": True, "start_time": at(time).isoformat()}
    return Record({"devices": {"cameras": {camera: {"device_id": camera, "last_event": event}}}}, timestamp=at("12:00"))


def query(module, name, **changes):
    return replace(next(one for one in module.queries(Settings()) if one.name == name), **changes)


@pytest.fixture
def state_of(spark):
    return lambda stream: State(spark, Checkpoint(stream.checkpoint))


@pytest.fixture(scope="module")
def camera_stats(spark, tmp_path_factory):
    """Three batches, each followed by one without records: the third closes the hour of the first two."""
    running = Stream(spark, query(nest, "nest-camera-stats"), tmp_path_factory.mktemp("stream"))
    running.run([seen("no-1", "10:10"), seen("no-1", "10:12"), seen("no-2", "10:11")], [seen("no-1", "10:20")], [seen("no-2", "11:30")])
    return running


def of(view, operator):
    return [row[2:] for row in view.rows if row[0] == operator]


def test_the_overview_tells_the_operators_their_rows_and_the_fullest_keys(camera_stats, state_of):
    view = state_of(camera_stats).overview(batch=2)
    assert view.columns == ["operator", "state", "batch", "rows", "bytes_on_disk", "key", "fullest"]
    (aggregation, deduplication) = view.rows
    assert aggregation[:4] == [0, "stateStoreSave", 2, 1]
    assert aggregation[5:] == [["_groupingexpression", "window.start", "window.end"], []]
    assert deduplication[:4] == [1, "dedupe", 2, 4]
    assert deduplication[5:] == [["device_id", "start_time"], [{"device_id": "no-1", "rows": 3}]]
    assert all(row[4] > 0 for row in view.rows)


def test_rows_are_those_after_the_batch_that_is_asked_for(camera_stats, state_of):
    state = state_of(camera_stats)
    window = {"start": "2026-01-01T10:00:00.000Z", "end": "2026-01-01T11:00:00.000Z"}
    counts = [of(state.rows(batch, [], limit=9), OPERATORS["stateStoreSave"]) for batch in (0, 2)]
    assert counts == [[[{"_groupingexpression": "unknown", "window": window}, {"count": count}]] for count in (3, 4)]
    devices = [key["device_id"] for key, _ in of(state.rows(5, [], limit=9), OPERATORS["dedupe"])]
    assert devices == ["no-2"], "the watermark has passed the others"


def test_a_key_is_found_by_any_of_its_fields_and_narrowed_by_more(camera_stats, state_of):
    state = state_of(camera_stats)
    assert len(state.rows(2, ["no-1"], limit=9).rows) == 3
    (only,) = state.rows(2, ["no-1", "2026-01-01T10:12:00Z"], limit=9).rows
    assert only == [OPERATORS["dedupe"], "dedupe", {"device_id": "no-1", "start_time": "2026-01-01T10:12:00.000Z"}, {"__dummy__": None}]
    assert state.rows(2, ["no"], limit=9).rows == []


def test_a_limit_says_that_there_is_more(camera_stats, state_of):
    state = state_of(camera_stats)
    assert (len(state.rows(2, [], limit=4).rows), state.rows(2, [], limit=4).is_cut) == (4, True)
    for limit in (5, 2**31 - 1, 10**30):
        assert (len(state.rows(2, [], limit=limit).rows), state.rows(2, [], limit=limit).is_cut) == (5, False)


def test_changes_are_those_of_the_batches_that_are_named(camera_stats, state_of):
    view = state_of(camera_stats).changes((2, 5), ["no-1"], limit=9)
    assert view.columns == ["operator", "state", "batch", "change", "key", "value"]
    times = [(batch, change, key["start_time"][11:16]) for batch, change, key, _ in of(view, OPERATORS["dedupe"])]
    assert times == [(2, "update", "10:20"), (3, "delete", "10:10"), (5, "delete", "10:12"), (5, "delete", "10:20")]


def test_sums_of_one_kind_have_names_of_their_own(stream, state_of):
    running = stream(query(taxi, "taxi-borough-stats"))
    fields = {"PULocationID": 74, "fare_amount": 7.5, "tip_amount": 1.25}
    running.run([Record({"lpep_dropoff_datetime": round(at("10:10").timestamp() * 1000), **fields}, timestamp=at("12:00"))])
    ((_, value),) = of(state_of(running).rows(1, ["Manhattan"], limit=9), OPERATORS["stateStoreSave"])
    assert {name: value[name] for name in ("count", "sum", "sum_4", "sum_6")} == {"count": 1, "sum": 0.0, "sum_4": 7.5, "sum_6": 1.25}


def test_keys_that_are_numbers_are_in_their_order(stream, state_of):
    running = stream(query(taxi, "taxi-zone-sessions"))
    dropoff = {"lpep_dropoff_datetime": round(at("10:10").timestamp() * 1000), "total_amount": 7.5}
    running.run([Record({"PULocationID": zone, **dropoff}, timestamp=at("12:00")) for zone in (74, 9, 100)])
    view = state_of(running).rows(0, [], limit=9)
    zones = [key["zone_id"] for key in (row[2] for row in view.rows) if "zone_id" in key]
    assert zones == [9, 74, 100]


def test_timers_and_values_of_a_processor_are_read(stream, state_of):
    running = stream(query(nest, "nest-camera-status"), settings=Settings(watermark="10 minutes"))
    documents = [Record({"devices": {"cameras": {"no-1": {}}}}, timestamp=at(time)) for time in ("10:00", "10:11")]
    told = running.run(*([document] for document in documents))
    state = state_of(running)
    (timer,) = state.timers(3, [], limit=9).rows
    assert timer[2:] == ["2026-01-01T10:10:00.000Z", {"device_id": "no-1"}]
    assert told[-1].timers == 1
    ((_, label, _, value),) = state.rows(3, ["no-1"], limit=9).rows
    assert label == "transformWithStateInPySparkExec.camera"
    assert value["status"]["seen_ms"] == at("10:00").timestamp() * 1000
    assert [one["at_ms"] for one in value["waiting"]] == [at("10:11").timestamp() * 1000]


def test_a_query_without_timers_has_none(camera_stats, state_of):
    assert state_of(camera_stats).timers(2, [], limit=9).rows == []


def test_a_state_that_spark_cannot_read_is_one_line(camera_stats, spark, tmp_path):
    broken = Path(shutil.copytree(camera_stats.checkpoint, tmp_path / "broken"))
    for file in (broken / "state" / "1").rglob("*.delta"):
        file.unlink()
    with pytest.raises(StreamgaugeError, match=r"^Spark cannot read the state: .+$") as told:
        State(spark, Checkpoint(broken)).overview(2)
    assert len(str(told.value).splitlines()) == 1
