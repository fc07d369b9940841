"""Simulated Nest documents: what they look like, and how the day goes."""

import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import orjson
import pytest

from producers.nest.homes import TABLE
from producers.nest.simulation import DAMAGES, Simulation, corrupt, simulate

START = datetime(2024, 3, 1, 16, tzinfo=UTC)
CAMERA_FIELDS = {
    "device_id", "software_version", "structure_id", "where_id", "where_name", "name", "name_long", "is_online", "is_streaming",
    "is_audio_input_enabled", "last_is_online_change", "is_video_history_enabled", "web_url", "app_url", "is_public_share_enabled",
    "activity_zones", "public_share_url", "snapshot_url", "last_event",
}  # fmt: skip
EVENT_FIELDS = {
    "has_sound", "has_motion", "has_person", "start_time", "end_time", "urls_expire_time", "web_url", "app_url", "image_url",
    "animated_image_url", "activity_zone_ids",
}  # fmt: skip


def events_of(limit, **more):
    return list(simulate(Simulation(**{"start": START, "seed": 5, "limit": limit, **more})))


def moment(text):
    return datetime.fromisoformat(text)


@pytest.fixture(scope="module")
def events():
    return events_of(20_000)


@pytest.fixture(scope="module")
def documents(events):
    return [orjson.loads(event.value) for event in events]


@pytest.fixture(scope="module")
def cameras(events, documents):
    """(time of the document, camera) of every camera in every document."""
    return [
        (datetime.fromtimestamp(event.event_time_ms / 1000, UTC), camera)
        for event, document in zip(events, documents, strict=True)
        for camera in document["devices"].get("cameras", {}).values()
    ]


def sightings_of(value):
    """An independent reading of a document: (device_id, start_time in ms) of the people in it."""
    return {
        (camera["device_id"], round(moment(camera["last_event"]["start_time"]).timestamp() * 1000))
        for camera in orjson.loads(value)["devices"].get("cameras", {}).values()
        if camera.get("last_event", {}).get("has_person")
    }


def test_the_same_simulation_gives_the_same_bytes_in_another_process():
    program = (
        "import hashlib; from datetime import UTC, datetime; from producers.nest.simulation import Simulation, simulate\n"
        "digest = hashlib.sha256()\n"
        "for event in simulate(Simulation(datetime(2024, 3, 1, tzinfo=UTC), seed=9, limit=2000)): digest.update(event.key + event.value)\n"
        "print(digest.hexdigest())"
    )
    digests = {subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(digests) == 1


def test_another_seed_gives_other_documents(events):
    assert [event.value for event in events_of(1000, seed=6)] != [event.value for event in events[:1000]]


def test_a_longer_run_begins_as_the_shorter_one(events):
    assert events_of(500) == events[:500]


def test_documents_are_whole(documents):
    for document in documents:
        assert document["metadata"].keys() == {"access_token", "client_version"}
        assert document["metadata"]["access_token"].startswith("c.FAKE-TOKEN-")
        assert isinstance(document["metadata"]["client_version"], int)
        assert document.keys() == {"metadata", "devices", "structures"}
        assert document["devices"].keys() >= {"thermostats", "smoke_co_alarms"}
        assert len(document["structures"]) == 1


def test_cameras_are_whole_and_only_what_the_real_ones_lack_is_lacking(cameras):
    lacking = Counter(field for _, camera in cameras for field in CAMERA_FIELDS - camera.keys())
    assert lacking.keys() == {"activity_zones", "last_event"}
    assert set().union(*(camera.keys() for _, camera in cameras)) == CAMERA_FIELDS
    last_events = [camera["last_event"] for _, camera in cameras if "last_event" in camera]
    assert Counter(field for event in last_events for field in EVENT_FIELDS - event.keys()).keys() == {"end_time"}
    assert set().union(*last_events) == EVENT_FIELDS


def test_some_documents_tell_nothing_of_cameras(documents):
    assert 0.0005 < sum("cameras" not in document["devices"] for document in documents) / len(documents) < 0.01


def test_values_have_their_types_and_places(documents):
    for document in documents[:2000]:
        for name, camera in document["devices"].get("cameras", {}).items():
            assert camera["device_id"] == name
            assert camera["structure_id"] in document["structures"]
            assert {type(zone["id"]) for zone in camera.get("activity_zones", [])} <= {int}
            zones = {str(zone["id"]) for zone in camera.get("activity_zones", [])}
            assert set(camera.get("last_event", {}).get("activity_zone_ids", [])) <= zones
            assert all(isinstance(camera[field], bool) for field in CAMERA_FIELDS if field.startswith("is_"))
            urls = [value for part in (camera, camera.get("last_event", {})) for field, value in part.items() if field.endswith("_url")]
            assert all(".example.com/" in url or "://example.com/" in url for url in urls if url)


def test_the_key_is_the_home(events, documents):
    assert all(event.key.decode() in document["structures"] for event, document in zip(events, documents, strict=True))


def test_every_document_differs_from_every_other(events):
    assert len({event.value for event in events}) == len(events)


def test_the_average_document_is_about_1700_bytes(events):
    assert 1500 < sum(len(event.value) for event in events) / len(events) < 1900


def test_events_are_evenly_apart_in_event_time():
    times = [event.event_time_ms for event in events_of(1000, seconds_between=0.6)]
    assert {later - earlier for earlier, later in pairwise(times)} == {600}
    assert times[0] == START.timestamp() * 1000


def test_no_document_reports_an_event_that_began_more_than_five_minutes_before(cameras):
    ages = [now - moment(camera["last_event"]["start_time"]) for now, camera in cameras if "last_event" in camera]
    assert timedelta(minutes=4) < max(ages) <= timedelta(minutes=5)
    assert min(ages) >= timedelta(0)


def test_an_event_ends_at_most_once_after_it_began_and_before_it_is_said(cameras):
    ends = defaultdict(set)
    for now, camera in cameras:
        event = camera.get("last_event", {})
        if "end_time" in event:
            ends[camera["device_id"], event["start_time"]].add(event["end_time"])
            assert moment(event["start_time"]) < moment(event["end_time"]) <= now
    assert len(ends) > 1000
    assert {len(times) for times in ends.values()} == {1}


def test_events_are_reported_again_and_again_with_the_same_facts(cameras):
    reports = defaultdict(list)
    for _, camera in cameras:
        if "last_event" in camera:
            reports[camera["device_id"], moment(camera["last_event"]["start_time"])].append(camera["last_event"]["has_person"])
    assert all(len(set(people)) == 1 for people in reports.values())
    assert sum(map(len, reports.values())) / len(reports) > 2


def test_times_are_iso_8601_utc_mostly_with_milliseconds(cameras):
    texts = {camera["last_event"]["start_time"] for _, camera in cameras if "last_event" in camera}
    brief = [text for text in texts if len(text) == len("2016-12-29T00:00:00Z")]
    assert all(text.endswith("Z") for text in texts)
    assert 0.05 < len(brief) / len(texts) < 0.15
    assert {len(text) for text in texts} == {20, 24}


def test_facts_are_the_sightings_in_the_document(events):
    assert all(set(event.facts) == sightings_of(event.value) for event in events)
    assert sum(len(event.facts) for event in events) > 1000


def test_the_oldest_time_is_that_of_the_oldest_event(events, documents):
    for event, document in zip(events, documents, strict=True):
        starts = [
            round(moment(camera["last_event"]["start_time"]).timestamp() * 1000)
            for camera in document["devices"].get("cameras", {}).values()
            if "last_event" in camera
        ]
        assert event.oldest_time_ms == min([event.event_time_ms, *starts])


def test_people_come_and_go_with_the_hour():
    a_day = events_of(43_200, start=START.replace(hour=0), seconds_between=2)
    by_hour = Counter(fact[1] // 3_600_000 % 24 for fact in {fact for event in a_day for fact in event.facts})
    assert by_hour.keys() == set(range(24))
    assert by_hour[18] > 10 * by_hour[3]


def test_some_cameras_go_offline_and_come_back(cameras):
    states = defaultdict(list)
    for _, camera in cameras:
        states[camera["device_id"]].append(camera["is_online"])
    changes = Counter(change for online in states.values() for change in pairwise(online) if change[0] != change[1])
    assert changes[True, False] > 3
    assert changes[False, True] > 3


def test_every_camera_is_heard_of_within_minutes_but_those_of_dark_homes():
    """At the speed of the demo, from the quietest hour to the busiest."""
    heard = defaultdict(list)
    for event in simulate(Simulation(START.replace(hour=0), seed=5, limit=144_000)):
        for camera in orjson.loads(event.value)["devices"].get("cameras", {}):
            heard[camera].append(event.event_time_ms)
    pauses = [(later - earlier) / 60_000 for times in heard.values() for earlier, later in pairwise(times)]
    silent = [pause for pause in pauses if pause > 10]
    assert min(silent) >= 15
    assert max(silent) <= 65


def test_some_cameras_flap_and_others_are_offline_once():
    states = defaultdict(list)
    for event in simulate(Simulation(START, seed=5, limit=60_000)):
        for name, camera in orjson.loads(event.value)["devices"].get("cameras", {}).items():
            if not states[name] or states[name][-1][1] != camera["is_online"]:
                states[name].append((event.event_time_ms, camera["is_online"]))
    gone = [[time_ms for time_ms, online in changes if not online] for changes in states.values()]
    flapping = sum(sum(later - earlier < 600_000 for earlier, later in zip(times, times[3:], strict=False)) > 0 for times in gone)
    assert flapping > 3
    assert sum(len(times) == 1 for times in gone) > 3


def test_most_cameras_are_in_the_table_of_locations_and_a_few_are_not(cameras):
    located = {line.split(",")[0] for line in TABLE.read_text().splitlines()[1:]}
    devices = {camera["device_id"] for _, camera in cameras}
    assert len(devices) == 200
    assert len(devices - located) == 2


@pytest.mark.parametrize("seconds_between", [0.0005, 3600])
def test_very_dense_and_very_sparse_streams_hold_the_same_promises(seconds_between):
    for event in events_of(3000, seconds_between=seconds_between):
        assert set(event.facts) == sightings_of(event.value)
        assert 0 <= event.event_time_ms - event.oldest_time_ms <= 300_000


def test_a_limit_of_0_gives_nothing():
    assert events_of(0) == []


def is_usable(value):
    """What a reader can use, told without the code under test: UTF-8, JSON, an object with devices."""
    try:
        document = orjson.loads(value.decode())
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("devices"), dict)


@pytest.mark.parametrize("kind", range(len(DAMAGES)))
def test_no_damaged_document_is_usable(events, kind):
    assert all(is_usable(event.value) for event in events[:500])
    assert not any(is_usable(corrupt(event.value, kind)) for event in events[:500])


def test_a_reader_that_replaces_bad_bytes_cannot_use_damaged_documents_either(events):
    for number in range(len(DAMAGES)):
        assert not is_usable(corrupt(events[0].value, number).decode(errors="replace").encode())


def test_the_kinds_of_damage_take_turns(events):
    value = events[0].value
    kinds = [corrupt(value, number) for number in range(2 * len(DAMAGES))]
    assert len(set(kinds)) == len(DAMAGES)
    assert kinds[: len(DAMAGES)] == kinds[len(DAMAGES) :]
