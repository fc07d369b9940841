"""docs/articles.md, article by article: each of its commands runs, in the order of the page.

What would run until Ctrl-C runs once, and a producer that paces its records sends 200. TLC, Wikimedia and S3 are files and servers of this
machine. The examples and the dashboard have tests of their own.
"""

import re
import shlex
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import orjson
import pytest
from confluent_kafka import Producer
from documents import ROOT
from plain import one_camera
from running import succeed, verify
from sse_server import hold, serving
from tlc_file import write_parquet

from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.settings import Settings
from producers.taxi.simulation import Simulation as Trips
from producers.wikimedia.simulation import Simulation as Edits
from producers.wikimedia.simulation import simulate
from workshop.examples.__main__ import EXAMPLES, ON_KAFKA

PAGE = (ROOT / "docs" / "articles.md").read_text()
PACED = 200
DAY = datetime(2024, 3, 1, tzinfo=UTC)


def commands_of(article):
    """The commands of an article's section: those before its table, and those in the column `here`."""
    section = PAGE[PAGE.index(f"## {article}\n") :].partition("\n## ")[0]
    here = [line.split("|")[2] if line.startswith("|") else line for line in section.splitlines() if not line.startswith("[")]
    return [code for text in here for code in re.findall(r"`([^`]+)`", text) if re.search(r"(^| )(streamgauge|\S*python) ", code)]


@dataclass
class Reader:
    """Runs commands as they stand on the page."""

    settings: Settings
    variables: dict[str, str]

    def run(self, command):
        words = shlex.split(command)
        given = dict(word.split("=", 1) for word in words[: next(n for n, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))])
        program, *arguments = words[len(given) :]
        if program != "streamgauge":
            assert arguments[:2] == ["-m", "workshop.examples"]
            assert set(arguments[2:]) <= {*EXAMPLES, *ON_KAFKA}, command
        elif arguments[0] != "dashboard":
            variables = given | {name: text for name, text in self.variables.items() if name in given or name not in OF_THE_PAGE}
            done = succeed(*once(arguments), settings=self.settings, **variables)
            assert "Traceback" not in done.stderr
            return done.stdout
        return ""


OF_THE_PAGE = {"STREAMGAUGE_HOME", "STREAMGAUGE_DATABASE_URL"}
"""Variables that the page sets to an example of a value."""


def once(arguments):
    """The command, so that it ends."""
    command, *options = (word for word in arguments if word not in {"--watch", "--follow"})
    if command in {"run", "ingest"} and "--once" not in options:
        options.append("--once")
    if command == "produce" and "--limit" not in options:
        options += ["--limit", str(PACED)]
    return command, *options


@pytest.fixture
def reader(with_prefix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Reader(with_prefix(""), {})


def all_right(reader, **variables):
    verdicts = verify(settings=reader.settings, **variables)
    assert verdicts
    assert [found for found in verdicts.values() if found["verdict"] != "right"] == []


def test_kafka_and_nest_cameras(reader):
    printed = {command: reader.run(command) for command in ["streamgauge up", *commands_of("Kafka and Nest cameras")]}
    assert "94103" in printed["streamgauge report nest-camera-stats --min-count 10"]
    all_right(reader)


def test_new_york_taxis(reader, tmp_path):
    """The broker of this test allows one replica, so its topics stay as they are."""
    write_parquet_of_march(tmp_path / "taxi")
    reader.variables = {"STREAMGAUGE_CACHE": str(tmp_path)}
    for command in commands_of("New York taxis"):
        printed = reader.run(command)
    assert "Manhattan" in printed


def write_parquet_of_march(folder):
    folder.mkdir()
    write_parquet(folder / "green_tripdata_2024-03.parquet", Trips(DAY, limit=PACED))


@pytest.mark.delta
def test_a_topic_as_a_delta_table(reader, tmp_path):
    (tmp_path / "data" / "tables").mkdir(parents=True)
    (tmp_path / "data" / "tables" / "revenue.sql").write_text("select sum(price) as revenue from orders")
    create_topics(reader.settings.kafka, [Topic("orders", 1)])
    producer = Producer({"bootstrap.servers": reader.settings.bootstrap_servers})
    for number, command in enumerate(commands_of("A topic as a Delta table")):
        for order in range(3):
            producer.produce("orders", key=str(order), value=orjson.dumps({"order": order, "price": 100 * number + order}))
        assert producer.flush(30) == 0
        printed = reader.run(command)
    assert "derived_revenue" in printed
    all_right(reader)


def test_building_streaming_applications(reader, store, postgres, tmp_path):
    store.client.put_object(Bucket="bucket", Key="landing/documents.json", Body=one_camera("cam-1", DAY))
    reader.settings = replace(reader.settings, aws_endpoint_url=store.address)
    database = {"STREAMGAUGE_DATABASE_URL": postgres.new_database()}
    reader.variables = {"STREAMGAUGE_HOME": str(tmp_path / "landed"), **database}
    for command in commands_of("Building Streaming Applications with Apache Spark"):
        printed = reader.run(command)
    assert "camera-" in printed, "the activity of the cameras"
    all_right(reader, **database)


def test_avro_and_wikimedia(reader):
    edits = [orjson.loads(edit) for edit in simulate(Edits(datetime.now(UTC), limit=PACED))]
    with serving(edits, hold) as server:
        reader.variables = {"WIKIMEDIA_URL": server.url}
        for command in commands_of("Avro and Wikimedia"):
            printed = reader.run(command)
    assert '"requested_by":"Bot"' in printed
    all_right(reader)
