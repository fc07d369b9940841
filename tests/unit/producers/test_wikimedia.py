"""From text to records: recordings, simulated changes, Avro, what is damaged, what is put aside."""

import codecs
import io
import json
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from itertools import islice

import fastavro
import orjson
import pytest
from messages import refused

from contract.topics import MAX_RECORD_BYTES, MAX_VALUE_BYTES
from infrastructure.storage.data_files import data_file
from producers.delivery.events import Source
from producers.wikimedia.avro import DAMAGES, UNKNOWN_SCHEMA_ID, corrupt, schema_text
from producers.wikimedia.changes import Arrival, Changes
from producers.wikimedia.edits import edit_event
from producers.wikimedia.position import RecentIds
from producers.wikimedia.server_sent_events import replay
from producers.wikimedia.simulation import Simulation, simulate

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = fastavro.parse_schema(json.loads(data_file("schemas/wikimedia-value.avsc").read_text()))
TEXTS = list(simulate(Simulation(START, limit=2000)))
WITH_PARAMS = TEXTS[0].replace(b"%", b"%%")[:-1] + b',"log_params":%b}'


def encode(edit):
    out = io.BytesIO(b"\0\0\0\0\1")
    out.seek(5)
    fastavro.schemaless_writer(out, SCHEMA, edit)
    return out.getvalue()


def events_of(*texts):
    changes = Changes(Source.RECORDED)
    return changes, list(changes.events(map(Arrival, texts), encode))


def decoded(value):
    return fastavro.schemaless_reader(io.BytesIO(value[5:]), SCHEMA)


def test_the_same_simulation_gives_the_same_bytes_and_another_start_other_ids():
    assert list(simulate(Simulation(START, limit=2000))) == TEXTS
    ids = [{orjson.loads(text)["meta"]["id"] for text in simulate(Simulation(start, limit=50))} for start in (START, START.replace(hour=1))]
    assert not ids[0] & ids[1]


def test_simulated_changes_have_the_oddities_of_real_ones():
    events = [orjson.loads(text) for text in TEXTS]
    assert {type(event["log_params"]) for event in events if "log_params" in event} == {dict, list, str}
    assert any("id" not in event for event in events)
    assert any(event["type"] == 142 for event in events)
    assert all("old" not in event["length"] for event in events if event["type"] == "new")
    assert all("length" not in event for event in events if event["type"] in {"log", "categorize"})
    assert Counter(event["type"] for event in events).most_common(1)[0][0] == "edit"


def test_every_simulated_change_goes_through_avro_and_back():
    _, events = events_of(*TEXTS)
    assert len(events) == len(TEXTS)
    for text, event in zip(TEXTS, events, strict=True):
        edit = edit_event(orjson.loads(text))
        assert decoded(event.value) == {name: value for name, value in edit.items() if name != "schema_uri"}


def test_a_record_has_its_page_as_key_and_says_where_it_comes_from():
    told = orjson.loads(TEXTS[0])
    _, (event,) = events_of(TEXTS[0])
    assert event.key == f"{told['wiki']}:{told['title']}".encode()
    assert dict(event.headers) == {"source": b"recorded", "event_id": told["meta"]["id"].encode()}
    assert event.topic is None


def test_numbers_in_log_params_keep_all_their_digits():
    params = b'{"wei":115792089237316195423570985008687907853269984665640564039457584007913129639935,"share":[0.12345678901234567890,1E2]}'
    _, (event,) = events_of(WITH_PARAMS % params)
    assert decoded(event.value)["log_params"].encode() == params


def test_facts_are_the_edits():
    _, events = events_of(*TEXTS)
    told = [orjson.loads(text) for text in TEXTS]
    assert {fact for event in events for fact in event.facts} == {
        (one["meta"]["id"], one["timestamp"] * 1000) for one in told if one["type"] == "edit"
    }


def test_the_stream_s_time_never_goes_back():
    _, events = events_of(TEXTS[100], TEXTS[0], TEXTS[200])
    assert [event.event_time_ms for event in events] == sorted(event.event_time_ms for event in events)
    assert events[1].oldest_time_ms < events[1].event_time_ms


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"<html>", "not JSON: "),
        (TEXTS[0].replace(b"{", b'{"user": "Somebody else", ', 1), "a name is there twice in an object"),
        (b'{"meta": {}}', "meta.id: Field required"),
        (b"\xff", "not JSON: "),
        (b"", "not JSON: "),
        (TEXTS[0] + TEXTS[1], "not JSON: "),
        (TEXTS[0] + b"\n" + TEXTS[1], "not JSON: "),
        (WITH_PARAMS % (b"[" * 255 + b"]" * 255), "log_params: Value error, nested too deep"),
        (WITH_PARAMS % (b"[" * 1020 + b"]" * 1020), "log_params: Value error, nested too deep"),
        (WITH_PARAMS % b"1e400", "not JSON: number is infinity"),
    ],
)
def test_text_that_tells_no_change_goes_to_the_dead_letters(text, reason):
    _, (event,) = events_of(text)
    assert (event.topic, event.value, event.is_usable, event.facts) == ("dead-letters", text, False, ())
    headers = {name: value.decode() for name, value in event.headers}
    assert headers["reason"].startswith(reason)
    assert {name: headers[name] for name in ("topic", "partition", "offset")} == {"topic": "wikimedia", "partition": "-1", "offset": "-1"}
    assert datetime.fromisoformat(headers["timestamp"]).tzinfo is not None
    assert event.key == events_of(text)[1][0].key, "the same text has the same key"


def test_an_event_of_another_type_is_no_change():
    (event,) = Changes(Source.LIVE).events([Arrival(TEXTS[0], type="error")], encode)
    assert (event.topic, event.value) == ("dead-letters", TEXTS[0])
    assert dict(event.headers)["reason"] == b"an event of type 'error', not a change"


@pytest.mark.parametrize("name", ["comment", "title", "wiki"])
def test_a_change_that_fits_into_no_record_is_a_dead_letter_that_does(name):
    change = orjson.loads(TEXTS[0]) | {name: "x" * (MAX_RECORD_BYTES // 2 if name != "comment" else MAX_VALUE_BYTES)}
    text = orjson.dumps(change)
    _, (event, after) = events_of(text, TEXTS[1])
    assert (event.topic, event.value) == ("dead-letters", text[:MAX_VALUE_BYTES])
    assert dict(event.headers)["reason"].startswith(b"longer than the 10,485,760 bytes of a record")
    assert after.is_usable


@pytest.mark.parametrize("kind", [ValueError, TypeError, OverflowError, AttributeError])
def test_a_change_that_the_schema_has_no_place_for_goes_to_the_dead_letters(kind):
    def too_narrow(_):
        msg = "no int"
        raise kind(msg)

    (event,) = Changes(Source.LIVE).events([Arrival(TEXTS[0])], too_narrow)
    assert event.topic == "dead-letters"
    assert dict(event.headers)["reason"] == b"not by the schema: no int"


def test_canaries_and_what_comes_again_are_passed_over_counted_and_need_no_record():
    canary = orjson.dumps({"meta": {"domain": "canary"}})
    done = []
    texts = [TEXTS[0], canary, TEXTS[0], TEXTS[1]]
    changes = Changes(Source.LIVE, RecentIds([orjson.loads(TEXTS[1])["meta"]["id"]]))
    (event,) = changes.events([Arrival(text, partial(done.append, number)) for number, text in enumerate(texts)], encode)
    assert (changes.canaries, changes.repeated, done) == (1, 2, [1, 2, 3])
    event.acknowledged()
    assert done == [1, 2, 3, 0]


def test_no_damage_can_be_decoded():
    value = encode(edit_event(orjson.loads(TEXTS[0])))
    unknown, magic, broken, empty = (corrupt(value, number) for number in range(len(DAMAGES)))
    assert int.from_bytes(unknown[1:5]) == UNKNOWN_SCHEMA_ID
    assert unknown[5:] == value[5:]
    assert magic[0] != 0
    assert empty == b""
    with pytest.raises((EOFError, IndexError)):
        decoded(broken)


def as_lines(texts):
    return b"".join(text + b"\n" for text in texts)


def as_sse(texts, end=b"\n"):
    blocks = (
        b"event: message" + end + b'id: [{"offset":%d}]' % number + end + b"data: " + text + end + end for number, text in enumerate(texts)
    )
    return b":ok" + end + end + b"".join(blocks)


def texts_in(path):
    return [message.text for message in replay(path)]


RECORDINGS = {
    "lines": as_lines(TEXTS[:9]),
    "lines with CR": as_lines(TEXTS[:9]).replace(b"\n", b"\r"),
    "lines after a byte order mark": codecs.BOM_UTF8 + as_lines(TEXTS[:9]),
    "sse": as_sse(TEXTS[:9]),
    "sse with CRLF": as_sse(TEXTS[:9], b"\r\n"),
    "sse with CR": as_sse(TEXTS[:9], b"\r"),
    "sse after a byte order mark": codecs.BOM_UTF8 + as_sse(TEXTS[:9]),
    "sse without blanks": as_sse(TEXTS[:9]).replace(b"data: ", b"data:"),
}


@pytest.mark.parametrize("recording", RECORDINGS.values(), ids=RECORDINGS)
def test_a_recording_is_replayed_byte_for_byte(tmp_path, recording):
    (tmp_path / "file").write_bytes(recording)
    assert texts_in(tmp_path / "file") == TEXTS[:9]


@pytest.mark.parametrize("recording", [as_lines(TEXTS[:9]), as_sse(TEXTS[:9])], ids=["lines", "sse"])
@pytest.mark.parametrize("cut", [3, 40, 200])
def test_a_last_event_that_is_cut_off_is_a_dead_letter(tmp_path, recording, cut):
    (tmp_path / "file").write_bytes(recording[:-cut])
    *whole, last = events_of(*texts_in(tmp_path / "file"))[1]
    assert len(whole) == 8
    assert all(event.is_usable for event in whole)
    assert (last.topic, TEXTS[8].startswith(last.value)) == ("dead-letters", True)


@pytest.mark.parametrize("recording", [as_lines(TEXTS[:9]), as_sse(TEXTS[:9])], ids=["lines", "sse"])
def test_a_whole_last_event_needs_no_end_of_line(tmp_path, recording):
    (tmp_path / "file").write_bytes(recording.rstrip(b"\n"))
    assert texts_in(tmp_path / "file") == TEXTS[:9]


def test_a_bad_line_in_the_middle_is_handed_on(tmp_path):
    (tmp_path / "file").write_bytes(as_lines([TEXTS[0], b"<html>", TEXTS[1][:30], TEXTS[1]]))
    assert texts_in(tmp_path / "file") == [TEXTS[0], b"<html>", TEXTS[1][:30], TEXTS[1]]


@pytest.mark.parametrize("text", ["no JSON", '{"type": "nothing"}', "[", '{"type": "record"}'])
def test_a_file_that_is_no_schema_is_one_sentence(tmp_path, text):
    (tmp_path / "it.avsc").write_text(text)
    with refused("it.avsc", "Avro"):
        schema_text(tmp_path / "it.avsc")


def test_an_endless_simulation_does_not_end():
    assert len(list(islice(simulate(Simulation(START)), 3000))) == 3000
