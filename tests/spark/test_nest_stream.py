"""The Nest queries as streams: which sightings count, batch after batch, and which come too late."""

import csv
from dataclasses import replace

import pytest
from plain import one_camera
from streaming import Record, Stream, at

from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file
from pipeline.domains import nest

CAMERA_STATS, *_, DEAD_LETTERS = nest.queries(Settings())
CROWDS = next(query for query in nest.queries(Settings(crowd=3)) if query.name == "nest-crowds")
TEN_MINUTES = Settings(watermark="10 minutes")


def seen(time, camera="cam-1"):
    return Record(one_camera(camera, at(time)))


def hours(rows):
    """The start of each hour, and the count; of one zip code."""
    return {row["window"]["start"][11:16]: row["count"] for row in rows}


def test_a_batch_writes_the_hours_that_it_adds_to(stream):
    first, second = stream(CAMERA_STATS).run([seen("10:01"), seen("11:02")], [seen("11:03")])
    assert hours(first.rows) == {"10:00": 1, "11:00": 1}
    assert hours(second.rows) == {"11:00": 2}, "an hour that nothing was added to should not be written again"


def test_zip_codes_of_the_same_hour_have_rows_of_their_own(stream):
    with data_file("device_locations.csv").open() as file:
        located = next(csv.DictReader(file))
    counting = stream(CAMERA_STATS)
    counting.run([seen("10:01"), seen("10:01", located["device_id"])], [seen("10:02")])
    assert {row["zip_code"]: row["count"] for row in counting.table} == {"unknown": 2, located["zip_code"]: 1}


def test_a_sighting_counts_until_the_watermark_reaches_it(stream):
    counting = stream(CAMERA_STATS, settings=TEN_MINUTES)
    first, in_time, too_late = counting.run([seen("10:30"), seen("09:00")], [seen("10:20:01")], [seen("10:20")])
    assert (first.watermark, first.dropped, hours(first.rows)) == (at("10:20"), 0, {"09:00": 1, "10:00": 1}), (
        "no batch makes its own rows too late"
    )
    assert (in_time.dropped, hours(in_time.rows)) == (0, {"10:00": 2})
    assert (too_late.dropped, too_late.rows) == (1, []), "10:20 is ten minutes behind the newest event: too late, although its hour is open"


def test_a_stream_that_never_rests_drops_by_the_watermark_of_the_batch_before(stream):
    counting = stream(CAMERA_STATS, settings=TEN_MINUTES)
    first, second, third = counting.run([seen("10:30")], [seen("10:20", "cam-2")], [seen("10:20", "cam-3")], rests=False)
    assert first.watermark == at("10:20")
    assert [batch.dropped for batch in (first, second, third)] == [0, 0, 1], "the batch before the second one began without a watermark"


def test_the_watermark_is_as_late_as_the_settings_say(stream, settings_of):
    (only,) = stream(CAMERA_STATS, settings=settings_of(STREAMGAUGE_WATERMARK="2 hours")).run([seen("20:00")])
    assert only.watermark == at("18:00")


def test_a_sighting_that_is_reported_again_counts_once_whatever_batch_it_comes_in(stream):
    counting = stream(CAMERA_STATS)
    _, again = counting.run([seen("10:00"), seen("10:00")], [seen("10:00"), seen("10:01")])
    assert hours(again.rows) == {"10:00": 2}


def test_append_writes_an_hour_once_when_the_watermark_has_passed_its_end(stream):
    append = stream(replace(CAMERA_STATS, mode="append"), settings=TEN_MINUTES)
    still_open, final, after = append.run([seen("10:30")], [seen("11:10"), seen("10:59")], [seen("11:11")])
    assert still_open.rows == []
    assert hours(final.rows) == {"10:00": 2}
    assert after.rows == [], "11:00 is open, and 10:00 has been written"


def test_complete_writes_every_hour_in_each_batch(stream):
    _, second = stream(replace(CAMERA_STATS, mode="complete")).run([seen("10:01")], [seen("15:02")])
    assert hours(second.rows) == {"10:00": 1, "15:00": 1}


def test_a_batch_that_runs_again_after_a_kill_writes_the_same_rows(stream):
    counting = stream(CAMERA_STATS, settings=TEN_MINUTES)
    _, second = counting.run([seen("10:30")], [seen("10:40"), seen("10:20")])
    counting.lose_last_commit()
    again, third = counting.run([seen("10:41")])
    assert again == second
    assert hours(third.rows) == hours(counting.table) == {"10:00": 3}


def test_records_that_cannot_be_used_do_not_stop_the_stream(stream):
    _, second = stream(CAMERA_STATS).run([None, b"not JSON", {}], [seen("10:00")])
    assert hours(second.rows) == {"10:00": 1}


def test_dead_letters_name_the_record_in_whatever_batch_it_comes(stream):
    first, second = stream(DEAD_LETTERS).run([seen("10:00"), b"not JSON"], [Record({}, partition=2)])
    assert [row["key"] for row in first.rows + second.rows] == [
        '{"offset":1,"partition":0,"topic":"nest-logs"}',
        '{"offset":0,"partition":2,"topic":"nest-logs"}',
    ]


@pytest.mark.parametrize("name", ["nest-camera-stats", "nest-crowds"])
def test_the_setting_of_the_window_reaches_the_query(stream, settings_of, name):
    settings = settings_of(STREAMGAUGE_NEST_WINDOW="20 minutes", STREAMGAUGE_CROWD="1")
    (query,) = (query for query in nest.queries(settings) if query.name == name)
    (only,) = stream(query, settings=settings).run([seen("10:39:59"), seen("10:40")])
    assert [(row["window"]["start"][11:16], row["window"]["end"][11:16]) for row in only.rows] == [("10:20", "10:40"), ("10:40", "11:00")]


def crowds_of(batch, hour):
    """(size of the crowd, when it was reached) in this hour."""
    return [(row["crowd"], row["reached_at"][11:19]) for row in batch.rows if row["window"]["start"][11:16] == hour]


@pytest.fixture(scope="module")
def crowds(spark, tmp_path_factory):
    """Three batches with sightings of three hours."""
    return Stream(spark, CROWDS, tmp_path_factory.mktemp("crowds"), settings=Settings(watermark="1 day")).run(
        [seen("10:01"), seen("10:02"), seen("12:01"), seen("12:02"), seen("12:09"), seen("14:01"), seen("14:01"), seen("14:02")],
        [seen("10:03"), seen("10:04"), seen("12:03"), seen("15:01")],
        [seen("10:05"), seen("15:02")],
    )


def test_a_crowd_is_written_when_it_is_reached_and_stays_the_same(crowds):
    assert crowds_of(crowds[0], "10:00") == []
    assert crowds_of(crowds[1], "10:00") == [(3, "10:03:00")]
    assert crowds_of(crowds[2], "10:00") == [(3, "10:03:00")], "the row is written again, unchanged"


def test_a_sighting_that_arrives_late_moves_the_crowd_back(crowds):
    assert [crowds_of(batch, "12:00") for batch in crowds[:2]] == [[(3, "12:09:00")], [(3, "12:03:00")]]


def test_a_crowd_counts_each_sighting_once_and_each_hour_by_itself(crowds):
    assert [crowds_of(batch, hour) for batch in crowds for hour in ("14:00", "15:00")] == [[]] * 6
