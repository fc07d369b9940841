"""`streamgauge serve`: result tables over HTTP, asked by a client, with a broker without Java."""

import orjson
import polars as pl
import pytest
from foreign_rows import example
from mock_kafka import MockKafka
from running import eventually, one_line_error, streamgauge
from served import served

from infrastructure.process.ports import free_ports
from streamgauge.platform.listening import is_free

TOPIC = "nest-camera-stats"
TEN = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}
ELEVEN = {"start": "2026-01-01T11:00:00Z", "end": "2026-01-01T12:00:00Z"}


def write(kafka, zip_code, count, window=TEN):
    key = orjson.dumps({"window": {"end": window["end"], "start": window["start"]}, "zip_code": zip_code})
    kafka.write(TOPIC, None if count is None else orjson.dumps({"zip_code": zip_code, "window": window, "count": count}), key=key)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    kafka = MockKafka(tmp_path_factory.mktemp("home"), [TOPIC, "nest-crowds", "nest-temperatures"])
    write(kafka, "94107", 3)
    write(kafka, "94107", 5)
    write(kafka, "94107", 4, ELEVEN)
    write(kafka, "94110", 1)
    write(kafka, "94114", 7)
    write(kafka, "94114", None)
    return kafka


@pytest.fixture(scope="module")
def client(kafka):
    with served(kafka.settings, "serve", path="/tables") as client:
        yield client


def row(zip_code, count, window=TEN):
    return {"zip_code": zip_code, "window": window, "count": count}


def error(answer):
    return answer.status_code, answer.json()["error"]


ROWS = [row("94107", 5), row("94107", 4, ELEVEN), row("94110", 1)]


def test_a_table_is_the_last_row_of_each_key(client):
    assert client.get(f"/tables/{TOPIC}").json() == {"table": TOPIC, "left_out": 0, "warning": None, "rows": ROWS}


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("zip_code=94110", ROWS[2:]),
        ("zip_code=94107&window.start=2026-01-01T11:00:00Z", ROWS[1:2]),
        ("count=1&count=4", ROWS[1:]),
        ("zip_code=0", []),
    ],
)
def test_rows_are_asked_for_by_the_values_of_columns(client, question, rows):
    assert client.get(f"/tables/{TOPIC}?{question}").json()["rows"] == rows


def test_a_table_in_arrow_has_its_types(client):
    found = pl.read_ipc_stream(f"{client.base_url}/tables/{TOPIC}.arrow?zip_code=94107")
    assert found.schema["window"].fields[0].dtype == pl.Datetime("us", "UTC")
    assert found["count"].to_list() == [5, 4]


def test_a_row_that_is_written_appears(client, kafka):
    for count in (1, 2):
        kafka.write("nest-crowds", orjson.dumps(example("nest-crowds") | {"crowd": count}), key=b"{}")
        eventually(lambda: [row["crowd"] for row in client.get("/tables/nest-crowds").json()["rows"]] == [count], f"{count} to be there")  # noqa: B023


def test_a_row_that_cannot_be_read_is_left_out_and_counted(client, kafka):
    kafka.write("nest-temperatures", orjson.dumps(example("nest-temperatures")), key=b"{}")
    kafka.write("nest-temperatures", b"no JSON", key=b"\xff")
    eventually(lambda: client.get("/tables/nest-temperatures").json()["left_out"] == 1, "the row to be left out")
    found = client.get("/tables/nest-temperatures").json()
    assert len(found["rows"]) == 1
    assert found["warning"].startswith("1 row of topic nest-temperatures cannot be read and left out")


def test_the_list_of_tables_has_their_columns(client):
    found = {table["table"]: table["columns"] for table in client.get("/tables").json()["tables"]}
    assert found[TOPIC] == ["zip_code", "window.start", "window.end", "count"]


def test_an_unknown_name_or_value_is_one_line_that_says_what_there_is(client):
    code, text = error(client.get("/tables/cameras"))
    assert code == 404
    assert text.startswith(f"no table cameras; there are {TOPIC}, ")
    assert error(client.get(f"/tables/{TOPIC}?zip=1")) == (400, "no column zip; there are zip_code, window.start, window.end, count")
    assert error(client.get(f"/tables/{TOPIC}?count=many")) == (400, "count: expected int64, found many")
    assert error(client.get("/")) == (404, "Not Found")


def test_it_is_read_only_and_answers_under_its_own_name_only(client):
    assert client.post(f"/tables/{TOPIC}").status_code == 405
    foreign = error(client.get("/tables", headers={"Host": "rebound.example:9465"}))
    assert foreign == (400, "no host rebound.example; there are 127.0.0.1, localhost")
    assert error(client.get("/tables", headers={"Host": "[::1"}))[0] == 400
    assert client.get("/tables", headers={"Host": "LocalHost:80"}).is_success


@pytest.mark.skipif(not is_free(0, "::1"), reason="IPv6 is not possible on this machine")
def test_it_answers_at_an_address_of_ipv6(kafka):
    with served(kafka.settings, "serve", path="/tables", host="::1") as client:
        assert client.get(f"/tables/{TOPIC}").json()["rows"] == ROWS


def test_without_kafka_the_answer_is_that_it_may_come_later(tmp_path, kafka):
    (nobody,) = free_ports(1)
    address = f"127.0.0.1:{nobody}"
    with served(kafka.settings.__class__(home=tmp_path, kafka_bootstrap_servers=address), "serve", path="/tables") as client:
        code, text = error(client.get(f"/tables/{TOPIC}"))
        assert code == 503
        assert address in text


@pytest.mark.parametrize("host", ["", " ", "*", "*.example.com"])
def test_a_host_that_is_no_name_is_one_line(kafka, host):
    done = streamgauge("serve", "--host", host, settings=kafka.settings)
    assert f"--host: expected an address or a name, found {host!r}" in one_line_error(done)


def test_a_taken_port_is_one_line(kafka):
    broker = kafka.settings.kafka_bootstrap_servers.rpartition(":")[2]
    done = streamgauge("serve", "--port", broker, settings=kafka.settings)
    assert "--port" in one_line_error(done)
