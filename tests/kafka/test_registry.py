"""The embedded schema registry: its ids, its rule, its starts and ends."""

import re
import socket
from contextlib import closing

import orjson
import psutil
import pytest
from running import eventually, settings_on_free_ports, start_server, streamgauge, succeed

from infrastructure.errors import StreamgaugeError
from infrastructure.registry.client import SchemaRegistry
from infrastructure.storage.data_files import data_file
from streamgauge.platform.registry import EmbeddedRegistry

VERSION_1, VERSION_2 = (data_file(f"schemas/{name}").read_text() for name in ("wikimedia-value.avsc", "wikimedia-value.v2.avsc"))


@pytest.fixture
def idle(tmp_path):
    """Settings of a registry that does not run; what was started with them is stopped in the end."""
    chosen = settings_on_free_ports(tmp_path / "home")
    yield chosen
    EmbeddedRegistry(chosen).stop()


@pytest.fixture(scope="module")
def detached(tmp_path_factory):
    """Settings of a registry that outlives the process which started it, for the tests of this file that kill it."""
    chosen = settings_on_free_ports(tmp_path_factory.mktemp("home"))
    assert start_server(EmbeddedRegistry(chosen), detached=True)
    yield chosen
    assert EmbeddedRegistry(chosen).stop()
    assert not EmbeddedRegistry(chosen).stop()


def restarted(settings):
    """The registry, as it is after a kill -9 and another start."""
    EmbeddedRegistry(settings).process.kill()
    eventually(lambda: EmbeddedRegistry(settings).process is None, "its process to be gone")
    assert start_server(EmbeddedRegistry(settings), detached=True)
    return SchemaRegistry(settings.registry)


def test_ids_are_on_disk_when_they_are_given_out_and_mean_the_same_after_a_kill(detached):
    before = SchemaRegistry(detached.registry)
    ids = [before.register("wikimedia-value", text) for text in (VERSION_1, VERSION_2)]
    at_the_kill = before.register("a-value", '{"type": "string"}')
    after = restarted(detached)
    assert after.schema(at_the_kill) == '{"type": "string"}'
    assert [after.register("wikimedia-value", text) for text in (VERSION_1, VERSION_2)] == ids
    assert orjson.loads(after.schema(ids[1]))["fields"] == orjson.loads(VERSION_2)["fields"]
    assert after.register("another-value", '{"type": "int"}') not in {*ids, at_the_kill}


def test_a_second_start_finds_the_first_and_leaves_a_level_that_someone_chose(detached):
    client = SchemaRegistry(detached.registry).client
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility(level="FULL")
    assert not start_server(EmbeddedRegistry(detached), detached=True)
    assert SchemaRegistry(detached.registry).client.get_compatibility() == "FULL"


def test_a_new_version_must_read_what_the_old_one_wrote(registry):
    own = SchemaRegistry(registry.registry)
    subject = "compatibility-value"
    versions = [VERSION_1, VERSION_2]
    assert len({own.register(subject, text) for text in versions}) == len(versions)
    unreadable = orjson.loads(VERSION_1)
    unreadable["fields"].append({"name": "must_be_there", "type": "string"})
    with pytest.raises(StreamgaugeError, match=f"refuses the schema of {subject}: .*must_be_there"):
        own.register(subject, orjson.dumps(unreadable).decode())
    assert len(own.versions(subject)) == len(versions)


def test_only_this_machine_reaches_it(registry):
    process = EmbeddedRegistry(registry).process
    java = next(one for one in (process, *process.children(recursive=True)) if "java" in one.name())
    listening = {one.laddr.ip for one in java.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    assert listening, "it listens nowhere"
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1"}, listening


def test_a_taken_port_is_one_line_that_names_the_setting(idle):
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", idle.registry_port))
        other.listen()
        up = streamgauge("up", settings=idle)
    assert up.returncode == 2
    assert f"port {idle.registry_port} on 127.0.0.1 is taken" in up.stderr
    assert "STREAMGAUGE_REGISTRY_PORT" in up.stderr
    assert len(up.stderr.strip().splitlines()) == 1, up.stderr
    assert not (idle.home / "kafka").exists(), "ports are looked at before anything is started"


def test_one_that_ends_at_once_is_an_error_with_the_end_of_its_log(idle):
    data = idle.home / "registry" / "data"
    data.mkdir(parents=True)
    (data / "registry.mv.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StreamgaugeError, match="the schema registry ended before it answered"):
        start_server(EmbeddedRegistry(idle), detached=True)


def test_a_registry_of_ones_own_is_used_and_left_alone(idle, registry):
    own = {"SCHEMA_REGISTRY_URL": registry.registry_url, "KAFKA_BOOTSTRAP_SERVERS": registry.bootstrap_servers}
    up = succeed("up", settings=idle, **own)
    assert f"{registry.registry_url} (yours, by SCHEMA_REGISTRY_URL)" in up.stdout
    assert not up.stderr, up.stderr
    down = streamgauge("down", settings=idle, **own).stdout
    assert "Schema registry left alone: it is yours, by SCHEMA_REGISTRY_URL" in " ".join(down.split())
    SchemaRegistry(registry.registry).subjects()
    assert not (idle.home / "registry").exists()


def test_a_proxy_of_the_environment_is_not_asked_for_the_way_to_this_machine(fresh_registry):
    nobody = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "NO_PROXY": "", "no_proxy": ""}
    found = streamgauge("doctor", settings=fresh_registry, **nobody).stdout
    assert re.search(r"ok +schema registry", found), found
    succeed("produce", "wikimedia", "--limit", "10", "--unpaced", settings=fresh_registry, **nobody)
