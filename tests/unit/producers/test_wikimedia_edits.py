"""What is made of the oddities of real events."""

import json
from functools import reduce

import pytest
from messages import refused

from producers.wikimedia.edits import edit_event, is_canary
from producers.wikimedia.position import Position, RecentIds

EDIT = {
    "$schema": "/mediawiki/recentchange/1.0.0",
    "meta": {
        "uri": "https://en.wikipedia.org/wiki/Kafka",
        "request_id": "6a0f0a5e-0000-4000-8000-000000000001",
        "id": "11111111-2222-4333-8444-555555555555",
        "dt": "2026-01-01T12:00:00.123Z",
        "domain": "en.wikipedia.org",
        "stream": "mediawiki.recentchange",
        "topic": "eqiad.mediawiki.recentchange",
        "partition": 0,
        "offset": 5_000_000_000,
    },
    "id": 1_900_000_001,
    "type": "edit",
    "namespace": 0,
    "title": "Kafka",
    "title_url": "https://en.wikipedia.org/wiki/Kafka",
    "comment": "/* Life */ ç",
    "timestamp": 1_767_268_800,
    "user": "Somebody",
    "bot": False,
    "minor": True,
    "patrolled": True,
    "length": {"old": 100, "new": 90},
    "revision": {"old": 1, "new": 2},
    "server_url": "https://en.wikipedia.org",
    "server_name": "en.wikipedia.org",
    "server_script_path": "/w",
    "wiki": "enwiki",
    "parsedcomment": "Life",
    "notify_url": "https://en.wikipedia.org/w/index.php?diff=2",
}


def without(*names):
    return {name: value for name, value in EDIT.items() if name not in names}


def at(time):
    return EDIT | {"meta": {**EDIT["meta"], "dt": time}, "timestamp": None}


def nested(levels):
    return reduce(lambda inner, _: [inner], range(levels), 0)


def test_an_edit_is_what_it_was():
    edit = edit_event(EDIT)
    assert {name: edit[name] for name in EDIT if name != "$schema"} == without("$schema")
    assert edit["schema_uri"] == EDIT["$schema"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": 9_000_000_000}, {"id": 9_000_000_000}),
        ({"id": None}, {"id": None}),
        ({"type": 142}, {"type": "142"}),
        ({"type": "142"}, {"type": "142"}),
        ({"length": {"new": 12}, "revision": {"new": 3}}, {"length": {"old": None, "new": 12}, "revision": {"old": None, "new": 3}}),
        ({"length": None}, {"length": None}),
        ({"log_params": {"b": 1, "a": [2]}}, {"log_params": '{"b":1,"a":[2]}'}),
        ({"log_params": []}, {"log_params": "[]"}),
        ({"log_params": [1, "zwei"]}, {"log_params": '[1,"zwei"]'}),
        ({"log_params": ""}, {"log_params": '""'}),
        ({"log_params": "text"}, {"log_params": '"text"'}),
        ({"timestamp": None}, {"timestamp": 1_767_268_800}),
        ({"a_field_of_tomorrow": "kept"}, {"a_field_of_tomorrow": "kept"}),
    ],
    ids=str,
)
def test_oddities(change, expected):
    edit = edit_event(EDIT | change)
    assert isinstance(edit, dict), edit
    assert {name: edit[name] for name in expected} == expected


@pytest.mark.parametrize("name", ["id", "minor", "patrolled", "length", "revision", "title_url", "notify_url", "comment", "log_params"])
def test_what_may_be_absent_is_null(name):
    assert edit_event(without(name))[name] is None


def test_log_params_are_json_that_can_be_read():
    for given in ({"a": "ü"}, [1, None], 'a "string"'):
        assert json.loads(edit_event(EDIT | {"log_params": given})["log_params"]) == given


def test_the_offset_of_the_origin_may_be_long():
    assert edit_event(EDIT)["meta"]["offset"] == 5_000_000_000


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ([], "not a JSON object"),
        (None, "not a JSON object"),
        ({}, "meta: Field required"),
        (without("type"), "type: Field required"),
        (without("wiki"), "wiki: Field required"),
        (without("bot"), "bot: Field required"),
        (without("title"), "title: Field required"),
        (EDIT | {"type": True}, "type: Input should be a valid string"),
        (EDIT | {"bot": 1}, "bot: Input should be a valid boolean"),
        (EDIT | {"id": 2**63}, "id: Input should be less than 9223372036854775808"),
        (EDIT | {"id": "7"}, "id: Input should be a valid integer"),
        (EDIT | {"length": {"new": 1.5}}, "length.new: Input should be a valid integer"),
        (EDIT | {"length": 3}, "length: Input should be a valid dictionary or instance of OldAndNew"),
        (EDIT | {"timestamp": 1_767_268_800_123}, "timestamp: Input should be less than 253402300800"),
        (EDIT | {"timestamp": -1}, "timestamp: Input should be greater than or equal to 0"),
        (EDIT | {"meta": {**EDIT["meta"], "id": None}}, "meta.id: Input should be a valid string"),
        (EDIT | {"log_params": nested(255)}, "log_params: Value error, nested too deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_change_has_a_reason(event, reason):
    assert edit_event(event) == reason


@pytest.mark.parametrize("time", ["2026-01-01T12:00:00Z", "2026-01-01 12:00:00.999", "2026-01-01T13:00:00+01:00"])
def test_without_a_timestamp_a_change_is_of_the_time_in_meta_dt(time):
    assert edit_event(at(time))["timestamp"] == 1_767_268_800


@pytest.mark.parametrize(
    "time", ["yesterday", "2026-01-01", "20260101T120000Z", "2026-W01-4", "2026-01-01T12", "1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z"]
)
def test_meta_dt_is_a_date_with_a_time_of_day_or_the_change_has_no_time(time):
    assert edit_event(at(time)) == (
        f"no timestamp, and meta.dt is not a date and time of the years 1970 to 9999, such as 2026-01-31T10:00:00Z: {time!r}"
    )


def test_canaries_are_known_by_their_domain():
    assert is_canary({"meta": {"domain": "canary"}})
    assert not is_canary(EDIT)
    assert not is_canary("canary")
    assert not is_canary({"meta": "canary"})


def test_a_position_moves_on_over_what_is_acknowledged_without_a_gap(tmp_path):
    position = Position(tmp_path / "position.json", "http://here")
    first, second, third, without_id = (position.read(name) for name in ("a", "b", "c", ""))
    position.acknowledged(second)
    assert position.last_event_id == ""
    position.acknowledged(first)
    assert position.last_event_id == "b"
    position.acknowledged(without_id)
    position.acknowledged(third)
    position.acknowledged(first)
    assert position.last_event_id == "c"
    position.save()
    assert Position(tmp_path / "position.json", "http://here").last_event_id == "c"
    assert Position(tmp_path / "position.json", "http://elsewhere").last_event_id == ""


@pytest.mark.parametrize("text", ['{"url": "http://here", "last_ev', '{"url": "http://here"}', "[]", ""])
def test_a_damaged_position_is_refused_by_name(tmp_path, text):
    (tmp_path / "position.json").write_text(text)
    with refused(f"{tmp_path / 'position.json'} is damaged", "delete it"):
        Position(tmp_path / "position.json", "http://here")


def test_recent_ids_are_bounded():
    recent = RecentIds(["a"], most=2)
    assert [recent.is_new(name) for name in ("a", "b", "b", "c", "a")] == [False, True, False, True, True]
