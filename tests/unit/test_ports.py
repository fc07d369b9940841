"""Ports that other programs use: the demo takes others and says so, and a message knows our own servers."""

import random
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest
from messages import absent, refused
from running import settings_on_free_ports

from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings
from streamgauge.demo import ports
from streamgauge.demo.services import children
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.listening import described


@contextmanager
def listening(port):
    with socket.create_server(("127.0.0.1", port)):
        yield


@pytest.fixture
def usual(tmp_path, monkeypatch):
    """Settings whose ports are the usual ones."""
    chosen = settings_on_free_ports(tmp_path / "home")
    monkeypatch.setattr(ports, "USUAL", chosen)
    return chosen


@pytest.mark.parametrize("name", ["kafka_port", "registry_port", "dashboard_port"])
def test_the_demo_takes_the_next_free_port_and_says_what_other_commands_need(usual, name):
    said = []
    with listening(getattr(usual, name)):
        found = ports.on_free_ports(usual, said.append, dashboard=True)
    port = getattr(found, name)
    assert port > getattr(usual, name)
    assert found == replace(usual, **{name: port})
    assert len(said) == 1
    variable = f"STREAMGAUGE_{name.upper()}"
    assert absent(said[0], f"port {getattr(usual, name)}", f"pid {psutil.Process().pid}", f"{variable}={port}") == []
    assert all(child.environment[variable] == str(port) for child in children(found, None, dashboard=True)), (
        "a child would use another port"
    )


def test_the_demo_takes_no_port_that_another_setting_names(usual):
    chosen = replace(usual, registry_port=usual.kafka_port + 1)
    with listening(usual.kafka_port):
        found = ports.on_free_ports(chosen, [].append, dashboard=True)
    assert found.registry_port == chosen.registry_port
    assert found.kafka_port > found.registry_port


def test_no_port_is_looked_for_on_a_host_that_has_none(usual, monkeypatch):
    monkeypatch.setattr(ports, "next_free", pytest.fail)
    chosen = replace(usual, dashboard_host="192.0.2.1")
    assert ports.on_free_ports(chosen, pytest.fail, dashboard=True) == chosen


def test_kafka_takes_no_port_for_itself_that_a_setting_names(usual, monkeypatch):
    (other,) = free_ports(1, but=[usual.kafka_port, usual.registry_port, usual.dashboard_port])
    drawn = iter([usual.kafka_port, usual.registry_port, usual.dashboard_port, other])
    monkeypatch.setattr(random, "randrange", lambda *_: next(drawn))
    assert EmbeddedKafka(usual)._server_properties()["controller.quorum.voters"] == f"1@127.0.0.1:{other}"


def test_free_ports_and_ports_that_were_chosen_stay(usual, monkeypatch):
    said = []
    assert ports.on_free_ports(usual, said.append, dashboard=True) == usual
    monkeypatch.setattr(ports, "USUAL", Settings())
    with listening(usual.kafka_port):
        assert ports.on_free_ports(usual, said.append, dashboard=True) == usual
    assert said == []


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["-Djava.io.tmpdir=/home/jane/a b/kafka/tmp"], ["Kafka broker", "STREAMGAUGE_HOME='/home/jane/a b' streamgauge down"]),
        (["-Djava.io.tmpdir=/data/registry/tmp"], ["schema registry", "STREAMGAUGE_HOME=/data streamgauge down"]),
        (["/opt/dashboard/app.py"], ["dashboard of Streamgauge"]),
        (["-Djava.io.tmpdir=tmp"], [psutil.Process().name()]),
        (["-Djava.io.tmpdir=/tmp"], [psutil.Process().name()]),
    ],
)
def test_a_message_knows_a_server_of_ours_and_its_home(arguments, facts):
    command = [sys.executable, "-c", "print(flush=True); input()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()  # its command cannot be read before it runs
        text = described(psutil.Process(process.pid))
        process.communicate(b"\n")
    assert absent(text, *facts, f"pid {process.pid}") == []


def test_two_servers_on_one_port_are_one_line():
    with refused("STREAMGAUGE_KAFKA_PORT", "STREAMGAUGE_REGISTRY_PORT", "9092"):
        Settings.from_environment({"STREAMGAUGE_REGISTRY_PORT": "9092"})
    own = {"KAFKA_BOOTSTRAP_SERVERS": "kafka:9092", "STREAMGAUGE_REGISTRY_PORT": "9092"}
    assert Settings.from_environment(own).registry_port == 9092
