"""The exporter on a broker without Java, and without one."""

import threading
from contextlib import contextmanager

import orjson
import pytest
from mock_kafka import MockKafka
from prometheus_client import generate_latest
from running import eventually, kafka_client_threads, one_line_error, streamgauge
from served import served

from contract.topics import DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS, VERDICTS
from infrastructure.process.ports import free_ports
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings
from streamgauge.metrics.events import NewRecords
from streamgauge.metrics.exporter import Exporter
from streamgauge.platform.listening import is_free

FAILED = orjson.dumps({"event": "terminated", "query": "counts", "time": "2026-01-01T10:00:00Z", "error": "boom"})


def figures(exporter):
    return generate_latest(exporter.registry).decode().splitlines()


@contextmanager
def following(exporter):
    """The exporter follows Kafka in a thread, and has read what is there."""
    stop = StopRequest()
    thread = threading.Thread(target=exporter.follow, args=[stop])
    thread.start()
    try:
        eventually(lambda: "streamgauge_exporter_connected 1.0" in figures(exporter), "the exporter to be connected")
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def kafka(tmp_path):
    return MockKafka(tmp_path, [topic.name for topic in (QUERY_STATES, STREAMING_METRICS, VERDICTS, DEAD_LETTERS)])


def test_it_counts_what_comes_after_its_start_and_goes_on_where_it_was(kafka):
    exporter = Exporter(kafka.settings.kafka, pytest.fail)
    kafka.write(STREAMING_METRICS.name, FAILED)
    with following(exporter):
        kafka.write(STREAMING_METRICS.name, FAILED)
        eventually(lambda: 'streamgauge_query_failures_total{query="counts"} 1.0' in figures(exporter), "the failure to count")
    kafka.write(STREAMING_METRICS.name, FAILED)
    with following(exporter):
        eventually(lambda: 'streamgauge_query_failures_total{query="counts"} 2.0' in figures(exporter), "the failure meanwhile to count")


def test_a_state_that_cannot_be_read_is_left_out_with_one_line(kafka):
    said = []
    kafka.write(QUERY_STATES.name, b"[1]", key=b"counts")
    exporter = Exporter(kafka.settings.kafka, said.append)
    for _ in range(2):
        with following(exporter):
            pass
    assert len(said) == 1
    assert said[0].startswith("1 row of topic query-states cannot be read and left out")


@pytest.mark.usefixtures("soon_away")
def test_once_kafka_is_away_it_has_no_gauges_but_its_counters(kafka):
    said = []
    exporter = Exporter(kafka.settings.kafka, said.append)
    with following(exporter):
        kafka.write(STREAMING_METRICS.name, FAILED)
        eventually(lambda: 'streamgauge_query_failures_total{query="counts"} 1.0' in figures(exporter), "the failure to count")
        del kafka.producer
        eventually(lambda: "streamgauge_exporter_connected 0.0" in figures(exporter), "the exporter to have lost Kafka")
        assert 'streamgauge_query_failures_total{query="counts"} 1.0' in figures(exporter)
    assert len(said) == 1


@pytest.mark.usefixtures("soon_away")
def test_without_kafka_it_says_so_and_has_no_gauges(tmp_path):
    settings, stop, said = Settings(home=tmp_path, kafka_bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}"), StopRequest(), []

    def warn(line):
        said.append(line)
        stop.set()

    exporter = Exporter(settings.kafka, warn)
    exporter.follow(stop)
    assert len(said) == 1
    assert settings.kafka_bootstrap_servers in said[0]
    assert [line for line in figures(exporter) if not line.startswith("#")] == ["streamgauge_exporter_connected 0.0"]


@pytest.mark.usefixtures("soon_away")
def test_however_often_it_tries_again_it_holds_no_more_clients(tmp_path, monkeypatch):
    before, clients = kafka_client_threads(), []

    class Retries(StopRequest):
        def wait(self, _):
            clients.append(len(kafka_client_threads() - before))
            return len(clients) == 4 and self.set()

    monkeypatch.setattr("infrastructure.kafka.result_table.ANSWER_SECONDS", 0.1)
    settings = Settings(home=tmp_path, kafka_bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}")
    Exporter(settings.kafka, lambda _: None).follow(Retries())
    assert max(clients) == clients[0], clients


def test_a_taken_port_is_one_line(kafka):
    broker = kafka.settings.kafka_bootstrap_servers.rpartition(":")[2]
    done = streamgauge("metrics", "--port", broker, settings=kafka.settings)
    assert "--port" in one_line_error(done)


@pytest.mark.skipif(not is_free(0, "::1"), reason="IPv6 is not possible on this machine")
def test_it_answers_at_an_address_of_ipv6(kafka):
    with served(kafka.settings, "metrics", path="/metrics", host="::1") as client:
        assert "streamgauge_exporter_connected" in client.get("/metrics").text


@pytest.mark.parametrize(
    ("before", "taken"),
    [({}, []), ({0: 1}, [b"1", b"2"]), ({0: 9}, [b"0", b"1", b"2"]), ({1: 0}, [b"0", b"1", b"2"])],
    ids=["at first", "again", "of a topic that was deleted meanwhile", "of a new partition"],
)
def test_it_goes_on_with_what_it_has_not_read(kafka, before, taken):
    kafka.write(DEAD_LETTERS.name, b"0", b"1", b"2")
    values = []
    with NewRecords(kafka.settings.kafka, DEAD_LETTERS.name, lambda message: values.append(message.value()), before).opened() as reader:
        reader.read_to_end()
    assert values == taken
    assert before[0] == 3
