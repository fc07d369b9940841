"""The page of `streamgauge break --page`: real faults of a real producer, and requests that no button of the page sends."""

import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
from messages import absent
from running import environment, eventually, one_line_error, settings_on_free_ports, streamgauge, with_kafka
from starlette.testclient import TestClient

from streamgauge.workshop import breaking
from streamgauge.workshop.breakage import Freeze
from streamgauge.workshop.fault_page import FaultPage
from streamgauge.workshop.faults import FAULTS

ADDRESS = "http://127.0.0.1:9467"


@pytest.fixture
def settings(tmp_path):
    """A home where a process stands for Kafka, which does not answer."""
    return with_kafka(settings_on_free_ports(tmp_path / "home"), psutil.Process())


@pytest.fixture
def page(settings):
    with TestClient(FaultPage(settings).app(), base_url=ADDRESS) as client:
        yield client


@pytest.fixture
def producer(settings):
    """A producer that waits for Kafka."""
    command = [sys.executable, "-m", "streamgauge.cli", "produce", "nest"]
    with subprocess.Popen(command, env=environment(settings), stderr=subprocess.DEVNULL) as process:
        yield psutil.Process(process.pid)
        process.kill()


def press(page, path, origin=ADDRESS):
    return page.post(path, headers={"Origin": origin} if origin else {})


def test_each_fault_has_a_button(page):
    text = page.get("/").text
    assert absent(text, "Nothing is broken", *(f'action="/break/{name}"' for name in FAULTS)) == []
    assert "disabled" not in text.partition("</style>")[2]


def test_a_fault_is_shown_with_its_signs_until_it_is_undone(page, settings, producer):
    eventually(lambda: FAULTS["frozen-producer"].action.find(settings), "the producer to start")
    text = press(page, "/break/frozen-producer").text
    eventually(lambda: producer.status() == psutil.STATUS_STOPPED, "the producer to stand still")
    assert absent(text, "Broken: frozen-producer", "goes stale", "Undo frozen-producer") == []
    assert text.partition("</style>")[2].count("disabled") == len(FAULTS)
    assert absent(press(page, "/undo").text, "It is undone", "Nothing is broken") == []
    eventually(lambda: producer.status() != psutil.STATUS_STOPPED, "the producer to go on")


@pytest.mark.parametrize(
    ("path", "told"), [("/break/frozen-producer", "no <code>streamgauge produce nest</code> runs"), ("/undo", "nothing is broken")]
)
def test_what_is_not_possible_is_said(page, path, told):
    assert told in press(page, path).text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (psutil.NoSuchProcess(7), "process no longer exists (pid=7); try again"),
        (PermissionError(1, "not permitted", "/a"), "cannot use /a"),
    ],
)
def test_an_error_of_the_system_is_said(page, settings, monkeypatch, error, told):
    def find(_):
        raise error

    monkeypatch.setitem(FAULTS, "frozen-producer", replace(FAULTS["frozen-producer"], action=Freeze("program", find)))
    assert told in press(page, "/break/frozen-producer").text
    assert breaking.played(settings) is None


@pytest.mark.parametrize("origin", ["http://example.org", "http://127.0.0.1:8501", "null", ""])
def test_a_page_of_another_site_breaks_nothing(page, settings, producer, origin):
    eventually(lambda: FAULTS["frozen-producer"].action.find(settings), "the producer to start")
    assert press(page, "/break/frozen-producer", origin).status_code == 403
    assert producer.status() != psutil.STATUS_STOPPED
    assert breaking.played(settings) is None


def test_another_host_name_is_refused(page):
    assert page.get("/", headers={"Host": "example.org"}).status_code == 400
    assert page.post("/undo", headers={"Host": "example.org", "Origin": "http://example.org"}).status_code == 400


def test_a_link_breaks_nothing_and_an_unknown_fault_is_none(page):
    assert page.get("/break/frozen-producer").status_code == 405
    assert press(page, "/break/nonsense").status_code == 404


def test_no_other_site_may_frame_it(page):
    assert absent(page.get("/").headers["Content-Security-Policy"], "frame-ancestors 'none'", "default-src 'none'") == []


@pytest.mark.parametrize("content", ["", "[]", '["no-such-fault","2026-01-01T00:00:00+00:00",null]', '["frozen-producer",5,null]'])
def test_a_file_that_names_no_fault_is_one_line_that_says_what_to_do(page, settings, content):
    file = settings.home / "workshop" / "fault.json"
    file.parent.mkdir()
    file.write_text(content)
    told = f"{file} names no fault of this version; delete it"
    assert page.get("/").text.startswith(told)
    assert one_line_error(streamgauge("break", "--undo", settings=settings)).startswith(f"error: {told}")


def test_an_archive_that_was_written_anew_stays_when_the_fault_is_undone(page, settings):
    archive, away = settings.lake / "nest" / "cameras", settings.lake / "nest" / "cameras.away"
    for text in ("old", "new"):
        batch = archive / "_spark_metadata" / "0"
        batch.parent.mkdir(parents=True)
        batch.write_text(text)
        if text == "old":
            press(page, "/break/lost-archive")
            assert not archive.exists()
    assert "Nothing is broken" in press(page, "/undo").text
    assert [(folder / "_spark_metadata" / "0").read_text() for folder in (archive, away)] == ["new", "old"]
    assert f"{away} is there" in press(page, "/break/lost-archive").text


def test_a_checkpoint_without_a_batch_is_not_damaged_and_nothing_is_killed(page, settings):
    offsets = settings.checkpoints / "nest-camera-stats-v1-update" / "offsets"
    offsets.mkdir(parents=True)
    assert "nest-camera-stats has no checkpoint with a batch" in press(page, "/break/damaged-checkpoint").text
    assert absent(page.get("/").text, "Nothing is broken") == []
