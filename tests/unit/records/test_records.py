"""`streamgauge records` on a broker without Java: records in, lines out."""

import itertools
import json
import signal
import subprocess
import sys

import pytest
from mock_kafka import MockKafka
from raw_records import write_raw
from running import environment, one_line_error, streamgauge, succeed

from infrastructure.errors import Unavailable
from infrastructure.settings import Settings
from streamgauge.records import reader
from streamgauge.records.reader import TopicRecords
from streamgauge.records.start import Start

TOPIC = "nest-logs"
COMMAND = [sys.executable, "-m", "streamgauge.cli", "records"]


@pytest.fixture
def kafka(tmp_path):
    return MockKafka(tmp_path, [TOPIC, "nest-crowds"])


def records(kafka, *options, topic=TOPIC):
    done = succeed("records", topic, "--format", "json", *options, settings=kafka.settings)
    return [json.loads(line) for line in done.stdout.splitlines()]


def values(kafka, *options):
    return [row["value"] for row in records(kafka, *options)]


def test_a_record_in_lines_for_a_person(kafka):
    kafka.write(TOPIC, b'{"a": 1}', key=b"home-1", partition=2, headers=[("source", b"simulated"), ("\x1b", None)])
    kafka.write(TOPIC, None, b"\x1b[2J\xff", second=1)
    assert succeed("records", TOPIC, settings=kafka.settings).stdout.splitlines() == [
        "nest-logs-2 @ 0, 2026-01-01T10:00:00.000Z",
        "  key      home-1",
        "  header   source: simulated",
        r"  header   \u001b: (null)",
        '  value    {"a": 1}',
        "nest-logs-0 @ 0, 2026-01-01T10:00:01.000Z",
        "  key      (null)",
        "  value    (null)",
        "nest-logs-0 @ 1, 2026-01-01T10:00:02.000Z",
        "  key      (null)",
        "  value    hex 1b5b324aff",
    ]


def test_a_header_whose_name_is_not_utf_8(kafka):
    for _ in range(20):  # Python calls confluent-kafka without a check after a few times
        write_raw(kafka.settings, TOPIC, b"{}", headers=[(b"\xff", b"1"), (b"b", b"2")])
    assert [row["headers"] for row in records(kafka)] == [[{"name": "\ufffd", "value": "1"}, {"name": "b", "value": "2"}]] * 20


def test_a_record_in_json_for_a_program(kafka):
    kafka.write(TOPIC, b'{"a": 1.50}', key="a\x9b\x7f".encode(), headers=[("h\x1b", b"\xff")])
    done = succeed("records", TOPIC, "--format", "json", settings=kafka.settings)
    assert done.stdout.rstrip("\n").isprintable()
    assert '"value":{"a": 1.50}' in done.stdout
    assert json.loads(done.stdout) == {
        "topic": TOPIC,
        "partition": 0,
        "offset": 0,
        "timestamp": "2026-01-01T10:00:00.000Z",
        "key": "a\x9b\x7f",
        "key_form": "text",
        "headers": [{"name": "h\x1b", "value": "ff"}],
        "value": {"a": 1.5},
        "value_form": "json",
    }


def test_records_of_all_partitions_come_in_order_of_time_and_of_one_in_order_of_offset(kafka):
    kafka.write(TOPIC, b"0", b"1", b"2", b"3", partition=0)
    kafka.write(TOPIC, b"2.5", partition=3, second=2)
    kafka.write(TOPIC, b"late", b"later", partition=3, second=0)
    kafka.write(TOPIC, b"-1", partition=1, second=-1)
    assert values(kafka) == ["-1", "0", "1", "2", "2.5", "late", "later", "3"]
    assert values(kafka, "--limit", "2") == ["-1", "0"]
    assert values(kafka, "--partition", "3", "--partition", "1") == ["-1", "2.5", "late", "later"]
    assert values(kafka, "--from", "2") == ["later", "2", "3"]
    assert values(kafka, "--from", "-1") == ["-1", "later", "3"]


def test_order_and_completeness_hold_while_partitions_are_paused(kafka, monkeypatch):
    monkeypatch.setattr(reader, "MOST_WAITING_BYTES", 3000)
    for partition, second in ((0, 30), (1, 0), (2, 15)):
        kafka.write(TOPIC, *(b"%d" % (second + number) for number in range(30)), partition=partition, second=second)
    kept = []
    topic = TopicRecords(kafka.settings.kafka, TOPIC, Start.of("beginning"))
    with topic.opened():
        for message in topic.present():
            kept.append(int(message.value()))
            assert max(map(len, topic._waiting.values())) < 10
    assert kept == sorted(kept)
    assert len(kept) == 90


def test_a_key_is_whole_or_a_field(kafka):
    for number, key in enumerate((b"home-1", b"home-10", b'{"zip_code":"10025"}', None)):
        kafka.write(TOPIC, b"%d" % number, key=key)
    assert values(kafka, "--key", "home-1") == ["0"]
    assert values(kafka, "--key", "10025") == ["2"]


def test_it_follows_with_records_that_arrive_until_the_limit(kafka):
    kafka.write(TOPIC, b"there")
    topic = TopicRecords(kafka.settings.kafka, TOPIC, Start.of("beginning"))
    found = []
    with topic.opened():
        for message in itertools.chain(topic.present(), topic.arriving()):
            found.append(message.value())
            if len(found) == 1:
                kafka.write(TOPIC, b"new", partition=1)
            elif len(found) == 2:
                kafka.write(TOPIC, b"newer")
            else:
                break
    assert found == [b"there", b"new", b"newer"]


def test_a_signal_ends_following_cleanly(kafka):
    kafka.write(TOPIC, b"there")
    with subprocess.Popen(
        [*COMMAND, TOPIC, "--follow"], env=environment(kafka.settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        lines = [following.stdout.readline() for _ in range(3)]
        following.send_signal(signal.SIGINT)
        rest, said = following.communicate(timeout=60)
    assert "there" in lines[-1]
    assert (following.returncode, rest, said) == (0, "", "")


def test_a_reader_that_has_enough_ends_it_without_a_traceback(kafka):
    kafka.write(TOPIC, *[b"x" * 1000] * 2000)
    with subprocess.Popen(
        [*COMMAND, TOPIC], env=environment(kafka.settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as all_of:
        assert all_of.stdout.readline().startswith("nest-logs-0 @ 0")
        all_of.stdout.close()
        said = all_of.stderr.read()
    assert said == ""


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("nest-log",), ("no topic nest-log, but nest-logs",)),
        (("orders",), ("no topic orders", "it has nest-crowds, nest-logs")),
        ((TOPIC, "--partition", "7"), ("no partition 7", "0, 1, 2, 3")),
        ((TOPIC, "--from", "end"), ("--from end", "--follow", "--from -10")),
        ((TOPIC, "--schema", "--follow"), ("--schema", "--follow")),
        ((TOPIC, "--from", "now"), ("--from is 'now'",)),
    ],
)
def test_what_cannot_be_is_one_line(kafka, arguments, facts):
    line = one_line_error(streamgauge("records", *arguments, settings=kafka.settings))
    assert [fact for fact in facts if fact not in line] == [], line


@pytest.mark.usefixtures("soon_away")
def test_a_kafka_that_is_away_is_one_line(tmp_path):
    settings = Settings(kafka_bootstrap_servers="127.0.0.1:9", home=tmp_path)
    assert "no Kafka answers at 127.0.0.1:9" in one_line_error(streamgauge("records", TOPIC, settings=settings), Unavailable.exit_code)


def test_when_there_is_nothing_to_print_it_says_what_the_topic_has(kafka):
    done = succeed("records", "nest-crowds", settings=kafka.settings)
    assert (done.stdout, done.stderr) == ("", "no such record; topic nest-crowds has no records\n")
    kafka.write(TOPIC, b"a", b"b", partition=1)
    done = succeed("records", TOPIC, "--from", "5", settings=kafka.settings)
    assert (done.stdout, done.stderr) == ("", "no such record; topic nest-logs has offsets 0 to 1 in partition 1\n")
