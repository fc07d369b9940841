"""`streamgauge demo --detach` and `down`: what starts in the background, what its caller is told, and what ends it."""

import shlex
import signal
import subprocess
import sys

import psutil
import pytest
from messages import absent
from running import alive, eventually, settings_on_free_ports, streamgauge

from streamgauge.demo import background
from streamgauge.demo.demo import open_page

FOR_EVER = "import signal; signal.pause()"


def demos():
    return [process for process in alive(psutil.Process().children()) if process.cmdline()[-1:] == ["demo"]]


@pytest.fixture
def settings(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


@pytest.fixture
def started(settings):
    """Starts what runs these lines of Python as the demo. Gives the exit code and what was said; kills it at the end."""

    def start(*lines):
        said = []
        return background.start([sys.executable, "-c", "\n".join(lines), "demo"], settings, said.append), said

    yield start
    for process in demos():
        process.kill()
        process.wait()


def test_the_caller_hears_all_until_everything_runs_and_the_demo_goes_on(settings, started):
    settings.logs.mkdir(parents=True)
    (settings.logs / "demo.out").write_text("   9 s  everything runs; of the last time\n")
    code, said = started('print("starting Kafka", flush=True)', 'print("everything runs; Ctrl-C ends it", flush=True)', FOR_EVER)
    assert (code, said[:2]) == (0, ["starting Kafka", "everything runs; Ctrl-C ends it"])
    assert absent(said[2], "`streamgauge logs demo --follow`", "`streamgauge down`") == []
    assert len(demos()) == 1


def test_a_demo_that_ends_before_is_told_with_its_error_and_exit_code(started):
    assert started('print("error: port 1 is taken")', "raise SystemExit(2)") == (2, ["error: port 1 is taken"])
    assert started("import os, signal", "os.kill(os.getpid(), signal.SIGKILL)") == (128 + signal.SIGKILL, [])


@pytest.mark.usefixtures("started")  # ends it
def test_an_interrupt_leaves_it_running_until_down_stops_it_and_the_caller_hears_so(settings):
    said = []

    def interrupt(line):
        said.append(line)
        if line == "starting Kafka":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        background.start([sys.executable, "-c", f'print("starting Kafka", flush=True)\n{FOR_EVER}', "demo"], settings, interrupt)
    assert absent(said[-1], "in the background", "`streamgauge down`") == []
    assert len(demos()) == 1
    assert background.stop(settings)
    assert demos() == []


def test_a_second_demo_does_not_hide_the_first_from_down(settings, started):
    with subprocess.Popen([sys.executable, "-c", FOR_EVER, "demo"]) as first:
        settings.home.mkdir()
        background.pid_file(settings).write(first.pid, "demo")
        assert started("raise SystemExit(2)") == (2, [])
        assert background.pid_file(settings).process().pid == first.pid
        first.kill()


def test_down_ends_the_demo_and_what_is_left_of_one_that_was_killed_is_no_demo(settings):
    with subprocess.Popen([sys.executable, "-c", FOR_EVER, "demo"]) as demo:
        settings.home.mkdir()
        background.pid_file(settings).write(demo.pid, "demo")
        done = streamgauge("down", settings=settings)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "the demo is stopped")
        assert demo.wait() == -signal.SIGTERM
    assert "the demo" not in streamgauge("down", settings=settings).stdout


def test_a_page_opens_in_the_browser_that_the_environment_names(tmp_path, monkeypatch):
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"
    (tmp_path / "script.py").write_text(script)
    monkeypatch.setenv("BROWSER", f"{shlex.join([sys.executable, str(tmp_path / 'script.py'), str(tmp_path / 'opened')])} %s")
    open_page("http://127.0.0.1:8501", pytest.fail)
    eventually(
        lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text() == "http://127.0.0.1:8501", "the page to be opened"
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has a screen")
def test_without_a_screen_the_address_is_said(monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    said = []
    open_page("http://127.0.0.1:8501", said.append)
    assert absent(said[0], "open http://127.0.0.1:8501") == []
