"""Replaying recorded documents."""

import gzip

import orjson
import pytest
from messages import refused
from running import one_line_error, streamgauge

from infrastructure.settings import Settings
from producers.delivery.events import Event
from producers.nest.recording import replay

NOON_MS = 1_482_926_400_000  # 2016-12-28T12:00:00Z


def document(start_time, person=True, device="d1"):
    last_event = {"has_person": person, "start_time": start_time}
    return orjson.dumps({"devices": {"cameras": {device: {"device_id": device, "structure_id": "s1", "last_event": last_event}}}})


@pytest.fixture
def recording(tmp_path):
    def write(*lines):
        path = tmp_path / "recording.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return write


def test_a_document_is_replayed_as_it_stands(recording):
    line = document("2016-12-28T12:00:00.000Z").replace(b'":', b'" : ')
    assert list(replay(recording(line))) == [Event(NOON_MS, NOON_MS, b"s1", line, (("d1", NOON_MS),))]


def test_a_recording_may_be_compressed(tmp_path):
    (path := tmp_path / "recording.jsonl.gz").write_bytes(gzip.compress(b"{}\n[]\n"))
    assert [event.value for event in replay(path)] == [b"{}", b"[]"]


def test_what_comes_before_the_damage_in_a_compressed_recording_is_sent(tmp_path):
    (path := tmp_path / "recording.jsonl.gz").write_bytes(gzip.compress(b"{}\n") + gzip.compress(b"[]\n")[:-4])
    events = replay(path)
    assert next(events).value == b"{}"
    with refused(f"{path} is damaged", "what comes before that was sent", "expected a whole gzip file"):
        list(events)


NOT_USABLE = [
    b"rubbish",
    b"\xff\xfe{}",
    b'{"a": 1}',
    b'{"devices": 5}',
    b"[1]",
    b'{"devices": {}, "devices": {}}',
    b'{"devices": {}, "x": [{"y": {"z": 1, "z" : 2}}]}',
    rb'{"devices": {}, "\u0064evices": 1}',
    b'{"devices": {',
    b'{"devices": {}}{"devices": {}}',
    b'{"devices": {}}}',
    b'{"devices": {}, "x": NaN}',
    rb'{"devices": {}, "x": "\ud800"}',
    rb'{"devices": {}, "x": "\u0000"}',
    b'{"devices": {}, "x": ' + b"9" * 1001 + b"}",
    b'{"devices": ' + b"[" * 100_000,
]


@pytest.mark.parametrize("line", NOT_USABLE)
def test_a_bad_line_is_replayed_as_it_stands_and_is_unusable(recording, line):
    (event,) = replay(recording(line))
    assert (event.value, event.is_usable, event.facts) == (line, False, ())


@pytest.mark.parametrize(
    "line",
    [
        b'{"devices": {}}',
        b'{"devices": {}, "x": 1e400, "y": 1e99999999, "z": "\\\\u0000"}',
        b'{"devices": {"cameras": null}}',
        b'{"devices": {"cameras": {"a": 7, "b": {"last_event": {"has_person": true}}}}}',
    ],
)
def test_a_document_that_lacks_things_is_usable_and_states_nothing(recording, line):
    (event,) = replay(recording(line))
    assert (event.is_usable, event.facts) == (True, ())


def test_the_home_of_a_document_without_cameras_is_its_structure(recording):
    (event,) = replay(recording(b'{"devices": {}, "structures": {"s9": {}}}'))
    assert event.key == b"s9"


def test_the_times_of_a_document_are_also_those_at_which_its_other_devices_were_connected(recording):
    kinds = {"thermostats": "2016-12-28T12:00:05.000Z", "smoke_co_alarms": "2016-12-28T12:00:09.000Z"}
    parts = {kind: {"d": {"structure_id": "s1", "last_connection": time}} for kind, time in kinds.items()}
    (event,) = replay(recording(orjson.dumps({"devices": parts})))
    assert (event.oldest_time_ms, event.event_time_ms, event.key) == (NOON_MS + 5000, NOON_MS + 9000, b"s1")


def test_blank_lines_are_left_out(recording):
    assert [event.value for event in replay(recording(b"", b"rubbish", b"  ", b"\r"))] == [b"rubbish"]


def test_the_stream_does_not_go_back_in_time_but_the_facts_do(recording):
    early, late = "2016-12-28T12:00:00Z", "2016-12-28T13:00:00Z"
    first, second = replay(recording(document(late), document(early)))
    assert (second.event_time_ms, second.oldest_time_ms) == (first.event_time_ms, NOON_MS)
    assert second.facts == (("d1", NOON_MS),)


def test_nobody_is_seen_where_no_person_was(recording):
    (event,) = replay(recording(document("2016-12-28T12:00:00Z", person=False)))
    assert event.facts == ()


def test_a_limit_ends_the_replay(recording):
    path = recording(b"a", b"b", b"c")
    assert [event.value for event in replay(path, 2)] == [b"a", b"b"]
    assert list(replay(path, 0)) == []


def test_a_missing_file_and_a_folder_are_refused_at_once_and_by_name(tmp_path):
    for path, problem in ((tmp_path / "nothing.jsonl", "does not exist"), (tmp_path, "is a directory")):
        line = one_line_error(streamgauge("produce", "nest", "--file", str(path), settings=Settings(home=tmp_path / "home")))
        assert str(path) in line
        assert problem in line


@pytest.mark.parametrize(
    "time",
    ["00:00:01", "2016", "2016-12", "2016-12-28", "1482926400", "", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2016-12-28T24:00:00Z"],
)
def test_what_is_no_time_for_the_pipeline_states_nothing(recording, time):
    (event,) = replay(recording(document(time)))
    assert (event.event_time_ms, event.facts, event.is_usable) == (0, (), True)


def test_a_camera_without_an_id_goes_by_its_name_and_one_with_a_long_id_counts_nowhere(recording):
    seen = {"has_person": True, "start_time": "2016-12-28T12:00:00.000Z"}
    cameras = {"a": {"last_event": seen}, "b": {"device_id": "i" * 256, "last_event": seen}}
    (event,) = replay(recording(orjson.dumps({"devices": {"cameras": cameras}})))
    assert event.facts == (("a", NOON_MS),)
