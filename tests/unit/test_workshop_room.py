"""The trainer's page: real commands of learners, a real server, and requests that no command sends."""

import json
import re
import socket
from datetime import UTC, datetime, timedelta
from html import unescape
from uuid import NAMESPACE_URL, uuid5

import pytest
from messages import absent
from running import one_line_error, streamgauge
from served import served
from starlette.testclient import TestClient

from infrastructure.settings import Settings
from streamgauge.workshop import room
from streamgauge.workshop.labs import all_labs, lab_of
from streamgauge.workshop.room_page import Room


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(Settings(home=tmp_path_factory.mktemp("home")), "workshop", "serve") as client:
        yield client


@pytest.fixture
def trainer(server):
    """A client of an empty page."""
    yield server
    for name in rows(server):
        server.delete("/learner", headers=learner(name))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Changes to the folder of one learner or another. They leave the page at the end."""
    learners = set()

    def change(name):
        learners.add(folder := tmp_path / name)
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)

    yield change
    for one in learners:
        monkeypatch.chdir(one)
        room.leave()


@pytest.fixture
def workshop(tmp_path, folder):
    """Runs `streamgauge workshop` in the folder of a learner."""
    folder("one")
    return lambda *arguments: streamgauge("workshop", *map(str, arguments), settings=Settings(home=tmp_path))


def rows(client):
    return rows_of(client.get("/").text)


def rows_of(page):
    """The rows of the page by name: what a learner did in each lab, and the two times."""
    found = re.findall(r"<tr>(<td.*?)</tr>", page)
    cells = [[unescape(cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)] for row in found]
    return {name: rest for name, *rest in cells}


def labs_of(client, name):
    return {number: cell for number, cell in enumerate(rows(client)[name][:-2], 1) if cell}


def learner(name):
    return {room.LEARNER_HEADER: uuid5(NAMESPACE_URL, name).hex}


def put(client, name, **progress):
    return client.put("/learner", params={"name": name}, headers=learner(name), json=progress)


def test_the_page_shows_where_a_learner_is_who_has_joined(trainer, workshop):
    room.report(1, 2, 6)
    assert rows(trainer) == {}
    assert (
        workshop("join", trainer.base_url, "7").stdout == f"the page at {trainer.base_url} shows 7; `streamgauge workshop leave` ends it\n"
    )
    assert labs_of(trainer, "7") == {}
    lab_of(1).start()
    lab_of(1).mark_passed()
    room.report(2)
    assert labs_of(trainer, "7") == {1: "done", 2: "started"}
    room.report(2, 3, 4)
    assert labs_of(trainer, "7") == {1: "done", 2: "3 of 4"}
    assert len(rows(trainer)["7"]) == len(all_labs()) + 2
    assert workshop("leave").stdout == f"the page at {trainer.base_url} shows you no more\n"
    assert rows(trainer) == {}
    room.report(2, 4, 4)
    assert rows(trainer) == {}
    assert workshop("leave").stdout == "no page shows you\n"


def test_two_learners_of_one_name_do_not_share_a_row(trainer, workshop, folder):
    workshop("join", trainer.base_url, "7")
    lab_of(1).start()
    lab_of(1).mark_passed()
    folder("another")
    refused = one_line_error(workshop("join", trainer.base_url, "7"))
    assert "another learner, or you in another folder, is on the page as 7; join with another name" in refused
    assert workshop("leave").stdout == "no page shows you\n"
    assert workshop("join", trainer.base_url, "8").returncode == 0
    folder("one")
    assert workshop("join", trainer.base_url, "7").returncode == 0
    assert labs_of(trainer, "7") == {1: "done"}
    assert labs_of(trainer, "8") == {}
    assert "as 8; join with another name" in one_line_error(workshop("join", trainer.base_url, "8"))


def test_a_learner_who_joins_with_another_name_has_one_row(trainer, workshop):
    for name in ("7", "seven"):
        workshop("join", trainer.base_url, name)
    assert list(rows(trainer)) == ["seven"]
    assert put(trainer, "7", done=[]).status_code == 204


def test_whoever_could_not_leave_tells_no_more_and_can_leave_later(trainer, workshop):
    workshop("join", trainer.base_url, "7")
    joined = room.JOINED.read_text()
    room.JOINED.write_text(joined.replace(str(trainer.base_url), "http://127.0.0.1:1"))
    assert "cannot tell the trainer's page at http://127.0.0.1:1: Connection refused" in one_line_error(workshop("leave"))
    room.report(1)
    room.JOINED.write_text(room.JOINED.read_text().replace("http://127.0.0.1:1", str(trainer.base_url)))
    room.report(1)
    assert labs_of(trainer, "7") == {}
    assert workshop("leave").stdout == f"the page at {trainer.base_url} shows you no more\n"
    assert rows(trainer) == {}


@pytest.mark.parametrize("wrong", [{"url": 5}, {"url": None}, {"learner": 7}])
def test_a_file_of_another_program_is_no_page(folder, wrong):
    folder("one")
    room.JOINED.parent.mkdir()
    room.JOINED.write_text(json.dumps({"url": "http://127.0.0.1:1", "name": "7", "learner": ""} | wrong))
    room.report(1)
    assert room.leave() is None


def test_the_time_at_a_check_goes_on_until_another_is_reached():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    client = TestClient(Room(all_labs(), clock=lambda: now).app("127.0.0.1"), base_url="http://127.0.0.1")
    times = []
    for passed in (1, 1, 2):
        put(client, "7", done=[], lab=1, passed=passed, total=6)
        now += timedelta(seconds=5)
        times.append(rows(client)["7"][-2:])
    assert times == [["5 s", "5 s ago"], ["10 s", "5 s ago"], ["5 s", "5 s ago"]]


def test_learners_are_in_the_order_of_numbers_and_then_names(trainer):
    for name in ("Zoe", "10", "2", "anna"):
        put(trainer, name, done=[])
    assert list(rows(trainer)) == ["2", "10", "anna", "Zoe"]


def test_a_name_is_text_and_nothing_else(trainer):
    name = '<script>x</script> & "é"'
    assert put(trainer, name, done=[]).status_code == 204
    assert "<script" not in trainer.get("/").text
    assert "&lt;script&gt;x&lt;/script&gt; &amp; &quot;é&quot;" in trainer.get("/").text
    assert trainer.get("/").headers["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\u202eb", "\x1b[31m", "x" * 31])
def test_a_name_that_is_none_is_refused(trainer, workshop, name):
    assert put(trainer, name, done=[]).status_code == 400
    assert "expected a name or number of at most 30 printable characters" in one_line_error(workshop("join", trainer.base_url, name))
    assert rows(trainer) == {}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"done": ["1"], "lab": "<b>"}', 400),
        (b'{"done": [], "lab": 100}', 400),
        (b'{"done": [], "passed": -1}', 400),
        (b'{"done": [%s]}' % b",".join([b"1"] * 100), 400),
        (b" " * 2_001, 413),
    ],
)
def test_what_is_no_progress_is_refused(trainer, content, status):
    answer = trainer.put("/learner", params={"name": "7"}, headers=learner("7"), content=content)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert rows(trainer) == {}


def test_the_number_of_learners_is_bounded(trainer):
    assert [put(trainer, str(number), done=[]).status_code for number in range(201)] == [204] * 200 + [403]
    assert put(trainer, "199", done=[1]).status_code == 204
    assert labs_of(trainer, "199") == {1: "done"}


def test_no_page_of_another_site_can_read_or_write_it(trainer):
    assert trainer.get("/", headers={"Host": "rebound.example"}).status_code == 400
    assert trainer.post("/learner", params={"name": "7"}, json={"done": []}).status_code == 405
    assert "Access-Control-Allow-Methods" not in trainer.options("/learner").headers


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_room_reaches_it_by_an_address_and_the_names_of_the_machine(host):
    client = TestClient(Room(all_labs()).app(host))
    name = socket.gethostname()
    found = {
        header: client.get("/", headers={"Host": header}).status_code
        for header in (
            "192.0.2.7:9466",
            "[2001:db8::7]:9466",
            "localhost",
            name.upper(),
            f"{name.split('.')[0]}.local:9466",
            "rebound.example",
            "",
        )
    }
    assert [header for header, status in found.items() if status != 200] == ["rebound.example", ""]
    told = client.get("/", headers={"Host": "rebound.example"}).json()["error"]
    assert absent(told, "no host rebound.example", name.lower(), "use its address, or start it with --host and that name") == []


def test_a_trainer_who_cannot_be_reached_is_one_line(workshop):
    assert "cannot tell the trainer's page" in one_line_error(workshop("join", "http://127.0.0.1:1", "7"))
    assert "cannot tell the trainer's page" in one_line_error(workshop("join", "trainer:9466", "7"))
    room.JOINED.parent.mkdir()
    room.JOINED.write_text('{"url": "http://user:secret@127.0.0.1:1", "name": "7", "learner": ""}')
    with pytest.raises(room.StreamgaugeError, match=r"cannot tell the trainer's page at http://\*\*\*@127.0.0.1:1: Connection refused"):
        room.report(1)
    room.JOINED.unlink()


def test_a_request_without_an_id_is_refused(trainer):
    answers = [trainer.request(method, "/learner", params={"name": "7"}, json={"done": []}) for method in ("PUT", "DELETE")]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert rows(trainer) == {}
