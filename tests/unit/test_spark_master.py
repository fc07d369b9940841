"""What SPARK_MASTER says, and the commands of a master and a worker."""

import socket
import sys
from pathlib import Path

import pytest
from messages import refused
from running import free_ports, settings_on_free_ports

from infrastructure.java.runtime import java_home
from infrastructure.spark_master import address_towards, endpoints, is_local
from streamgauge.platform import spark_daemons


@pytest.mark.parametrize(
    ("master", "expected"), [("local", True), ("local[*]", True), ("local-cluster[2,1,1024]", True), ("spark://host:7077", False)]
)
def test_what_stays_on_this_machine(master, expected):
    assert is_local(master) is expected


def test_the_masters_that_a_url_names():
    assert endpoints("spark://one:7077,two:7078") == [("one", 7077), ("two", 7078)]
    assert endpoints("spark://[fd00::1]:7077") == [("fd00::1", 7077)]


@pytest.mark.parametrize("master", ["spark://host", "host:7077", "spark://host:port", "spark://", "nonsense"])
def test_what_names_no_master(master):
    with refused(f"SPARK_MASTER={master}", "local[*]", "spark://host:7077", "k8s://https://host", "yarn"):
        endpoints(master)


def test_the_address_towards_the_first_master_that_answers():
    (closed,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert address_towards(f"spark://127.0.0.1:{closed},127.0.0.1:{server.getsockname()[1]}") == "127.0.0.1"


def test_no_master_answers():
    (closed,) = free_ports(1)
    with refused(f"spark://127.0.0.1:{closed}", "refused"):
        address_towards(f"spark://127.0.0.1:{closed}")


@pytest.mark.parametrize("host", ["é" * 70, "é..example"])
def test_a_host_that_cannot_be_one(host):
    with refused(f"spark://{host}:7077", "'idna'", "correct SPARK_MASTER"):
        address_towards(f"spark://{host}:7077")


def test_a_master_listens_where_it_is_told_and_remembers(tmp_path):
    settings = settings_on_free_ports(tmp_path / "home")
    command, environment = spark_daemons.master(settings, host="10.0.0.5", port=7077, web_port=0)
    assert command[1:] == ["org.apache.spark.deploy.master.Master", "--host", "10.0.0.5", "--port", "7077", "--webui-port", "0"]
    assert f"-Dspark.deploy.recoveryDirectory={tmp_path / 'home' / 'spark-master'}" in environment["SPARK_MASTER_OPTS"]
    assert environment["SPARK_LOCAL_IP"] == "10.0.0.5"


def test_a_worker_runs_what_the_driver_runs_on(tmp_path):
    settings = settings_on_free_ports(tmp_path / "home")
    command, environment = spark_daemons.worker(settings, "spark://m:7077", host="10.0.0.6", cores=2, memory="1g", web_port=0)
    assert command[-1] == "spark://m:7077"
    assert command[command.index("--cores") :][:4] == ["--cores", "2", "--memory", "1g"]
    assert environment["JAVA_HOME"] == str(java_home(settings)), "the Java that can do without a module"
    assert environment["PATH"].split(":")[0] == str(Path(sys.executable).parent), "tasks should find the driver's Python"


def test_a_worker_offers_all_that_it_has_if_nothing_is_said(tmp_path):
    command, _ = spark_daemons.worker(settings_on_free_ports(tmp_path), "spark://m:7077", host="h", cores=None, memory=None, web_port=0)
    assert "--cores" not in command
    assert "--memory" not in command
