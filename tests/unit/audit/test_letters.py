"""The dead letters that records must have: values in, letters out."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from auditing import NOON, Kafka, loaded, result
from avro import V1

from audit.checks.dead_letters import Letter, expected_letters
from contract.topics import MAX_VALUE_BYTES
from pipeline.formats.confluent_avro import MOST_UNKNOWN_IDS


def letters(query, *values, clock=NOON):
    """The letters by offset."""
    letters_of = result(query)
    found, _ = expected_letters(loaded(letters_of.facts, *values, clock=clock).database, letters_of)
    return {offset: letter for (_, _, offset), letter in found.items()}


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        (None, ["empty"]),
        (b"{", ["not JSON"]),
        (b'{"devices":{}}{}', ["more than one JSON value, or other text after the first"]),
        (rb'{"devices":"\ud800"}{}', ["not JSON"]),
        (b'{"devices":1,"devices":2}{}', ["not JSON"]),
        (b'{"devices":1,"devices":{}}', ["a name is there twice in an object"]),
        (b"[]", ["no devices"]),
        (b'{"devices":3}', ["no devices"]),
        (b'{"devices":{}}', None),
        (b'{"devices":{"cameras":[]}}', ["a field is of another type; the rest was used"]),
        (b'{"devices":{"cameras":{"c":3,"d":null}}}', ["a field is of another type; the rest was used"]),
        (b'{"devices":{"doors":3}}', None),
        (b'{"devices":{"cameras":{"c":{"is_online":"yes","name":3}}}}', ["a field is of another type; the rest was used"]),
        (b'{"devices":{"cameras":{"c":{"activity_zones":[{"id":1},2]}}}}', ["a field is of another type; the rest was used"]),
        (
            b'{"devices":{"cameras":{"c":{"last_event":{"has_person":true}}}}}',
            ["a person without start_time; the rest was used"],
        ),
        (
            b'{"devices":{"cameras":{"c":{"last_event":{"start_time":"2026-01-01T12:10:01Z"}}}}}',
            ["start_time is in the future; the rest was used"],
        ),
        (
            b'{"devices":{"thermostats":{"t":{"ambient_temperature_c":1000,"humidity":1.5}}}}',
            [
                "a reading without last_connection; the rest was used",
                "ambient_temperature_c is not a number that decimal(5,2) holds; the rest was used",
                "humidity is not a number that int holds; the rest was used",
            ],
        ),
    ],
)
def test_all_reasons_of_a_document_and_of_its_devices(value, reasons):
    found = letters("nest-dead-letters", value)
    assert (sorted(found[0].reasons) if found else None) == reasons


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        (b"3", ["no lpep_dropoff_datetime"]),
        (b'{"lpep_dropoff_datetime":-1,"fare_amount":"x"}', ["lpep_dropoff_datetime is before 1970"]),
        (b'{"lpep_dropoff_datetime":"1"}', ["lpep_dropoff_datetime is not a number that bigint holds"]),
        (b'{"lpep_dropoff_datetime":253402300799999}', ["lpep_dropoff_datetime is in the future"]),
        (
            b'{"lpep_dropoff_datetime":1,"fare_amount":1.005,"lpep_pickup_datetime":-1}',
            [
                "fare_amount is not a number that decimal(12,2) holds; the rest was used",
                "lpep_pickup_datetime is not of the years 1970 to 9999; the rest was used",
            ],
        ),
    ],
)
def test_what_is_no_trip_has_no_other_reason(value, reasons):
    assert sorted(letters("taxi-dead-letters", value)[0].reasons) == reasons


def test_of_an_id_without_a_schema_the_registry_was_asked_or_there_were_too_many(monkeypatch):
    monkeypatch.setattr("audit.domains.wikimedia.SchemaRegistry.schema", lambda *_: None)
    (letter,) = letters("wikimedia-dead-letters", b"\0\0\0\0\x4d").values()
    assert sorted(letter.reasons) == [
        f"more than {MOST_UNKNOWN_IDS} ids came that the registry does not have, and it was not asked for id 77",
        "the registry has no Avro schema of id 77",
    ]


def test_the_registry_may_have_been_given_a_schema_after_a_broken_value_of_its_id_became_a_dead_letter(monkeypatch):
    monkeypatch.setattr("audit.domains.wikimedia.SchemaRegistry.schema", lambda *_: V1)
    (letter,) = letters("wikimedia-dead-letters", b"\0\0\0\0\x4d").values()
    assert "broken, or not what its schema says, id 77" in letter.reasons
    assert letter.matches(replace(letter, reasons=["the registry has no Avro schema of id 77"]))
    assert not letter.matches(replace(letter, reasons=["the registry has no Avro schema of id 78"]))


@pytest.mark.parametrize(
    ("found", "is_match"),
    [
        ("the schema of id 7 cannot be used: Illegal character in: a-b", True),
        ("the schema of id 7 cannot be used: \n; only its first 10,000,000 bytes are kept", False),
        ("the schema of id 8 cannot be used: a-b is not a name", False),
        ("the schema of id 7", False),
    ],
)
def test_why_a_schema_cannot_be_used_matches_in_any_words(found, is_match):
    expected = Letter({}, None, ["empty", "the schema of id 7 cannot be used: a-b is not a name"])
    assert expected.matches(Letter({}, None, [found])) == is_match


def test_a_letter_tells_its_record_also_of_centuries_to_come_and_a_long_value_is_cut():
    long = b"x" * (MAX_VALUE_BYTES + 1)
    clock = datetime(2950, 1, 1, 12, 0, 0, 7000, tzinfo=UTC)
    (letter,) = letters("nest-dead-letters", long, clock=clock).values()
    assert letter.headers == {"topic": "nest-logs", "partition": "0", "offset": "0", "timestamp": "2950-01-01T12:00:00.007Z"}
    assert letter.digest == hashlib.sha256(long[:-1]).hexdigest()
    assert letter.reasons == [f"not JSON; only its first {MAX_VALUE_BYTES:,} bytes are kept"]


def test_a_record_after_the_year_2999_has_any_time_and_that_is_its_reason():
    (letter,) = letters("nest-dead-letters", b'{"devices":{}}', clock=None).values()
    assert "timestamp" not in letter.headers
    assert letter.reasons == ["the record's Kafka timestamp is not of the years 1970 to 2999; expected milliseconds since 1970"]
    for time in ("3000-01-01T00:00:00.000Z", "+49861-11-08T21:20:00.000Z"):
        assert letter.matches(Letter({**letter.headers, "timestamp": time}, letter.digest, letter.reasons)), time
    assert not letter.matches(Letter({"timestamp": time}, letter.digest, letter.reasons))


@pytest.mark.parametrize(("first", "verdict", "kinds"), [(0, "wrong", {"missing": 1}), (1, "right", {"not_checkable": 1})])
def test_a_letter_may_have_expired_also_if_the_topic_has_none_left(tmp_path, monkeypatch, first, verdict, kinds):
    broker = Kafka(tmp_path)
    broker.write("nest-logs", b"broken")
    broker.has_run("nest-dead-letters", 1, mode="append", committed=1)
    broker.write("dead-letters", b"of another record", key="another")
    monkeypatch.setattr(
        "audit.checks.dead_letters.first_and_end_offsets", lambda _, ends: {one: (min(first, end), end) for one, end in ends.items()}
    )
    found = broker.verdict("nest-dead-letters")
    assert (found.verdict, {kind: number for kind, number in found.rows.by_kind.items() if number and kind != "compared"}) == (
        verdict,
        kinds,
    )
