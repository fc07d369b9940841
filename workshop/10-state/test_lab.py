from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark import cloudpickle
from streaming import Record, at
from text_tables import cells_of

from infrastructure.settings import Settings
from pipeline.domains.nest import queries
from pipeline.sinks.topics import CompactedTopic

CAMERA_STATUS = next(query for query in queries(Settings()) if query.name == "nest-camera-status")
HEARD = """
camera              heard at      camera then  change
none                10:00         seen 10:00   online
seen 10:00          10:05, 10:03  seen 10:05   none
seen 10:05          10:03         seen 10:05   none
seen 10:05, silent  10:30         seen 10:30   online
"""
TIMERS = """
camera              next timer
seen 10:05          10:15
seen 10:05, silent  11:05
"""
EXPIRED = """
camera              timer  camera then         change
seen 10:05          10:10  seen 10:05          none
seen 10:05          10:15  seen 10:05, silent  silent
seen 10:05, silent  11:00  seen 10:05, silent  none
seen 10:05, silent  11:05  none                forgotten
"""
STREAM = """
batch  heard                            watermark  written
1      cam-1 10:00, cam-2 10:01         09:51      cam-1 online, cam-2 online
2      cam-2 10:21, cam-2 10:09         10:11      cam-1 silent
3      cam-1 10:40, cam-2 11:30         11:20      cam-1 online, cam-1 silent
4      cam-2 12:00                      11:50      cam-1 forgotten
"""


def ms(time):
    return round(at(time).timestamp() * 1000)


def clock(time_ms):
    """A time in ms as in the tables; anything else as it is."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (TypeError, ValueError, OverflowError):
        return repr(time_ms)
    return f"{moment:%H:%M}" if moment.date() == at("00:00").date() else f"{moment:%Y-%m-%d %H:%M}"


def camera_of(lab, text):
    return None if text == "none" else lab.Camera(ms(text[5:10]), text.endswith("silent"))


def told(result):
    """What `heard` and `expired` return, as in the tables."""
    is_pair = isinstance(result, tuple) and len(result) == 2
    assert is_pair, f"came:      {result!r}\nexpected:  two values, the camera (or None) and its change (or None)"
    camera, change = result
    state = "none" if camera is None else f"seen {clock(camera.seen_ms)}{', silent' if camera.is_silent else ''}"
    return state, "none" if change is None else str(change)


def expect_change(what, result, expected):
    came = told(result)
    assert came == tuple(expected), (
        f"{what}\ncame:      camera {came[0]}; change {came[1]}\nexpected:  camera {expected[0]}; change {expected[1]}"
    )


def expect_expired(lab, numbers):
    for number in numbers:
        before, timer, *expected = cells_of(EXPIRED)[number]
        expect_change(f"camera {before}; the timer of {timer}", lab.expired(camera_of(lab, before), ms(timer)), expected)


def test_a_camera_that_is_heard_keeps_its_newest_time(lab):
    """The times of a batch come in any order, and may be older than what the camera remembers. Only a new or a silent camera changes."""
    for before, times, *expected in cells_of(HEARD)[1:]:
        result = lab.heard(camera_of(lab, before), [ms(time) for time in times.split(", ")])
        expect_change(f"camera {before}; heard at {times}", result, expected)


def test_a_timer_is_a_time_of_the_stream(lab):
    """Count from the time at which the camera was heard, and not from the clock on the wall: a stream that is read again tomorrow must give the same."""
    for before, expected in cells_of(TIMERS)[1:]:
        came = clock(lab.next_timer_ms(camera_of(lab, before)))
        assert came == expected, f"camera {before}\ncame:      next timer {came}\nexpected:  next timer {expected}"


def test_a_timer_from_before_the_camera_was_heard_again_changes_nothing(lab):
    """The timer of 10:10 was set at 10:00, and the camera was heard at 10:05. Compare the timer with the one that the camera needs now."""
    expect_expired(lab, [1])


def test_a_camera_falls_silent_once(lab):
    """More timers fire while a camera is silent. It remembers that it is."""
    expect_expired(lab, [2, 3])


def test_a_camera_that_is_forgotten_leaves_no_state(lab):
    """Without a camera, the processor deletes the state. Without that, each camera that was ever heard stays in the state forever."""
    expect_expired(lab, [4])


@pytest.fixture
def cameras(lab, stream):
    """The product's query with the learner's processor, which Spark sends to its Python worker as a whole: the worker cannot import it."""
    cloudpickle.register_pickle_by_value(lab)
    sink = CompactedTopic(CAMERA_STATUS.sink.topic, key=("device_id", "state"))
    yield stream(
        replace(CAMERA_STATUS, transform=lab.camera_changes, static_tables=(), sink=sink), settings=Settings(watermark="10 minutes")
    )
    cloudpickle.unregister_pickle_by_value(lab)


def test_spark_runs_it_batch_by_batch(cameras):
    """Your functions are right one by one. Follow cam-1 through the batches: which timers are set, and which one has the watermark reached?"""
    lines = cells_of(STREAM)[1:]
    heard = [[one.split() for one in times.split(", ")] for _, times, *_ in lines]
    documents = [[Record({"devices": {"cameras": {camera: {}}}}, timestamp=at(time)) for camera, time in batch] for batch in heard]
    for (number, _, *expected), batch in zip(lines, cameras.run(*documents), strict=True):
        written = ", ".join(f"{row['device_id']} {row['state']}" for row in batch.rows) or "-"
        came = f"watermark {batch.watermark:%H:%M}; written {written}"
        wanted = f"watermark {expected[0]}; written {expected[1]}"
        assert came == wanted, f"batch {number}\ncame:      {came}\nexpected:  {wanted}"
