"""`streamgauge dead-letters export` and `replay`, on a broker without Java: letters in, copies of their records out."""

import base64
import json

import pytest
from filelock import FileLock
from messages import refused
from mock_kafka import MockKafka
from plain import read_topic
from running import one_line_error, streamgauge, succeed

from infrastructure.kafka.cluster import KafkaCluster
from streamgauge.dead_letters import replay as sending
from streamgauge.dead_letters.letters import Choice

SOURCE, LETTERS = "nest-logs", "dead-letters"


@pytest.fixture
def kafka(tmp_path):
    return MockKafka(tmp_path, [SOURCE, "nyc-taxi", "nest-camera-stats", LETTERS])


def write_letter(kafka, value, offset, *, partition=0, topic=SOURCE, reason="not JSON", second=0, **more):
    key = json.dumps({"offset": offset, "partition": partition, **more, "topic": topic}, separators=(",", ":"))
    told = {"topic": topic, "partition": str(partition), "offset": str(offset), "timestamp": "2026-01-01T10:00:00.000Z", "reason": reason}
    headers = [(name, text.encode()) for name, text in told.items()]
    kafka.write(LETTERS, value, key=key, headers=headers, second=second)


def replay(kafka, *options):
    return succeed("dead-letters", "replay", "--yes", *options, settings=kafka.settings)


def copies(kafka, topic=SOURCE):
    """The copies by the place that they name: partition, key, value, timestamp and other headers."""
    found = {}
    for message in read_topic(kafka.settings, topic):
        headers = dict(message.headers() or [])
        assert len(headers) == len(message.headers() or []), "a header is there twice"
        if place := headers.pop("replay_of", None):
            assert place not in found, f"{place} was sent twice"
            found[place.decode()] = (message.partition(), message.key(), message.value(), message.timestamp()[1], headers)
    return found


def test_a_copy_is_the_record_and_says_of_which_one(kafka):
    kafka.write(SOURCE, b"fine", b"broken", key=b"home-1", partition=2, headers=[("clock_ms", b"17")])
    kafka.write(SOURCE, None, partition=1)
    write_letter(kafka, b"broken", 1, partition=2)
    write_letter(kafka, None, 0, partition=1)
    assert replay(kafka).stdout == "sent 2\n"
    assert copies(kafka) == {
        '{"offset":1,"partition":2,"topic":"nest-logs"}': (2, b"home-1", b"broken", 1_767_261_601_000, {"clock_ms": b"17"}),
        '{"offset":0,"partition":1,"topic":"nest-logs"}': (1, None, None, 1_767_261_600_000, {}),
    }


def test_a_second_replay_sends_nothing_and_a_letter_that_is_there_twice_is_one(kafka):
    kafka.write(SOURCE, b"broken", b"broken too")
    for _ in range(2):
        write_letter(kafka, b"broken", 0)
    assert replay(kafka).stdout == "sent 1\n"
    done = replay(kafka)
    assert (done.stdout, done.stderr) == ("nothing to send\n", "not sent, because sent before: 1\n")
    write_letter(kafka, b"broken too", 1)
    assert replay(kafka).stdout == "sent 1\n"
    assert len(copies(kafka)) == 2


def test_a_copy_that_could_not_be_used_either_is_a_record_of_its_own(kafka):
    kafka.write(SOURCE, b"broken")
    write_letter(kafka, b"broken", 0)
    replay(kafka)
    write_letter(kafka, b"broken", 1)
    assert replay(kafka).stdout == "sent 1\n"
    assert set(copies(kafka)) == {f'{{"offset":{offset},"partition":0,"topic":"nest-logs"}}' for offset in (0, 1)}


def test_letters_are_chosen_by_reason_topic_and_place(kafka):
    for number, topic in enumerate((SOURCE, SOURCE, "nyc-taxi")):
        kafka.write(topic, b"%d" % number)
    write_letter(kafka, b"0", 0, reason="empty")
    write_letter(kafka, b"1", 1, reason="the event is in the future")
    write_letter(kafka, b"2", 0, topic="nyc-taxi", reason="the event is in the future")
    assert copies(kafka) == {}
    replay(kafka, "--reason", "future", "--topic", SOURCE)
    assert [value for _, _, value, *_ in copies(kafka).values()] == [b"1"]
    replay(kafka, "--since", "2")
    assert [value for _, _, value, *_ in copies(kafka, "nyc-taxi").values()] == [b"2"]
    assert len(copies(kafka)) == 1


def test_a_dry_run_counts_by_topic_and_reason(kafka):
    for offset, reason in enumerate(("empty", "the event is in the future", "the event is in the future", "\x9b")):
        kafka.write(SOURCE, b"%d" % offset)
        write_letter(kafka, b"%d" % offset, offset, reason=reason)
    kafka.write("nyc-taxi", b"0")
    write_letter(kafka, b"0", 0, topic="nyc-taxi", reason="empty")
    assert replay(kafka, "--dry-run").stdout.splitlines() == [
        "would send 4 to topic nest-logs, 1 to topic nyc-taxi",
        "  2 of nest-logs: the event is in the future",
        "  1 of nest-logs: empty",
        "  1 of nest-logs: \N{REPLACEMENT CHARACTER}",
        "  1 of nyc-taxi: empty",
    ]
    assert copies(kafka) == {}


def test_two_replays_do_not_run_at_once(kafka):
    kafka.write(SOURCE, b"broken")
    write_letter(kafka, b"broken", 0)
    with FileLock(kafka.settings.home / "replay.lock"):
        assert "another replay is running" in one_line_error(streamgauge("dead-letters", "replay", "--yes", settings=kafka.settings))
    assert copies(kafka) == {}


def test_what_cannot_be_sent_is_counted_by_why(kafka):
    kafka.write(SOURCE, b"of a topic that was created anew")
    write_letter(kafka, b"broken", 0)
    write_letter(kafka, b"broken", 7)
    write_letter(kafka, b"broken", 0, partition=9)
    write_letter(kafka, b"broken", 0, topic="gone")
    write_letter(kafka, b"no line of the stream", -1, partition=-1, sha256="ab")
    kafka.write(LETTERS, b"no letter", key=b"x")
    done = replay(kafka)
    assert done.stdout == "nothing to send\n"
    assert done.stderr.splitlines() == ["not sent, because never a record of a topic: 1", "not sent, because no longer in the topic: 4"]


def test_a_letter_whose_key_names_no_place_is_left_out(kafka):
    kafka.write(SOURCE, b"broken")
    for place in ("Infinity", "[" * 10_000, "{}", '"x"'):
        kafka.write(LETTERS, b"broken", key=f'{{"offset":{place},"partition":0,"topic":"{SOURCE}"}}')
    write_letter(kafka, b"broken", 0)
    assert replay(kafka).stdout == "sent 1\n"


def test_more_than_the_producer_takes_at_once_is_sent_in_parts(kafka, monkeypatch):
    made = KafkaCluster.producer
    monkeypatch.setattr(KafkaCluster, "producer", lambda self, config: made(self, {**config, "queue.buffering.max.kbytes": 1}))
    monkeypatch.setattr(sending, "_BYTES_AT_ONCE", 500)
    values = [b"%d" % number * 400 for number in range(9)]
    kafka.write(SOURCE, *values)
    for offset, value in enumerate(values):
        write_letter(kafka, value, offset)
    cluster = kafka.settings.kafka
    assert sending.replay(cluster, sending.plan_of(cluster, Choice().letters(cluster))) == 9
    assert len(copies(kafka)) == 9


def test_a_record_that_kafka_refuses_keeps_no_other_from_being_sent(kafka, monkeypatch):
    made = KafkaCluster.producer
    monkeypatch.setattr(KafkaCluster, "producer", lambda self, config: made(self, {**config, "message.max.bytes": 1000}))
    values = [b"a" * 2000, b"b"]
    kafka.write(SOURCE, *values)
    for offset, value in enumerate(values):
        write_letter(kafka, value, offset)
    cluster = kafka.settings.kafka
    with refused("1 of 2 records", "Message size too large", "the others are sent"):
        sending.replay(cluster, sending.plan_of(cluster, Choice().letters(cluster)))
    assert [value for _, _, value, *_ in copies(kafka).values()] == [b"b"]


def test_of_an_ingested_topic_a_record_does_not_replace_a_newer_one_of_its_key(kafka):
    kafka.write(SOURCE, b"old", b"new", key=b"a")
    kafka.write(SOURCE, b"only", key=b"b")
    for offset, value in enumerate((b"old", b"new", b"only")):
        write_letter(kafka, value, offset, reader="ingest-nest-logs")
    done = replay(kafka)
    assert done.stderr == "not sent, because of a key that has a newer record: 1\n"
    assert {value for _, _, value, *_ in copies(kafka).values()} == {b"new", b"only"}


def test_a_letter_of_another_program_does_not_bring_an_older_row_of_a_result_back(kafka):
    kafka.write("nest-camera-stats", b"old", b"new", key=b"a")
    write_letter(kafka, b"old", 0, topic="nest-camera-stats")
    assert replay(kafka).stderr == "not sent, because of a key that has a newer record: 1\n"
    assert copies(kafka, "nest-camera-stats") == {}


def test_it_asks_first(kafka):
    kafka.write(SOURCE, b"broken")
    write_letter(kafka, b"broken", 0)
    assert "--yes" in one_line_error(streamgauge("dead-letters", "replay", settings=kafka.settings))
    assert copies(kafka) == {}


def test_an_export_has_the_bytes_whole(kafka):
    write_letter(kafka, b"\xff\x00\x1b", 12, reason="the \x9b reason")
    write_letter(kafka, None, 13, reason="empty", reader="ingest-nest-logs")
    done = succeed("dead-letters", "export", settings=kafka.settings)
    assert done.stdout.replace("\n", "").isprintable()
    first, second = map(json.loads, done.stdout.splitlines())
    assert base64.b64decode(first.pop("value")) == b"\xff\x00\x1b"
    assert first == {
        "at": "2026-01-01T10:00:00.000Z",
        "topic": SOURCE,
        "partition": 0,
        "offset": 12,
        "timestamp": "2026-01-01T10:00:00.000Z",
        "reader": "",
        "reason": "the \x9b reason",
    }
    assert (second["value"], second["reader"], second["reason"]) == (None, "ingest-nest-logs", "empty")


def test_a_since_that_is_none_is_one_line(kafka):
    assert "--since is 'now'" in one_line_error(streamgauge("dead-letters", "export", "--since", "now", settings=kafka.settings))


@pytest.mark.parametrize("field", ["topic", "reader"])
def test_a_record_of_another_program_that_is_nested_deep_is_no_letter(kafka, field):
    origin = {"offset": b"0", "partition": b"0", "topic": b'"nest-logs"'} | {field: b"[" * 1020 + b"]" * 1020}
    kafka.write(LETTERS, b"any", key=b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name, value in origin.items()) + b"}")
    write_letter(kafka, b"broken", 0)
    assert [letter.value for letter in Choice().letters(kafka.settings.kafka)] == [b"broken"]
