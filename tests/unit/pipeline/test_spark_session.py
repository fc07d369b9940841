"""What keeps Spark from starting is one line."""

import pwd
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from messages import refused

from infrastructure.settings import Settings
from pipeline.spark import jvm, session


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts a session that has nothing to do with others of this process."""
    monkeypatch.setattr(session.SparkContext, "_active_spark_context", None)
    return lambda: session.spark_session(Settings(home=tmp_path))


def test_a_user_without_a_name(start, monkeypatch):
    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with refused("has no name on this machine", "/etc/passwd"):
        start()


def test_a_full_disk(start, monkeypatch):
    monkeypatch.setattr(session.SparkContext, "_gateway", None)
    monkeypatch.setattr(session.jars, "fetch", lambda *_: [])
    monkeypatch.setattr(jvm, "command", lambda *_: ["sleep", "5"])  # as Java, which does not end for that
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with refused("no space is left under", "free some space"):
        start()


def test_another_spark_in_spark_home(start, monkeypatch, tmp_path):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(session.jars, "fetch", lambda *_: [])
    with refused(f"SPARK_HOME={tmp_path} has no Spark {pyspark.__version__}", "unset it"):
        start()


@pytest.mark.parametrize(("prefix", "is_taken"), [("home-", True), ("Home-", False)])
def test_sockets_are_in_a_folder_that_is_found_in_lower_case(prefix, is_taken):
    # Spark tells Python the place of the socket for state in lower case: every batch would fail.
    with tempfile.TemporaryDirectory(prefix=prefix, dir="/tmp") as folder:
        config = session._socket_config(Settings(), Path(folder))
    assert (config.get("spark.python.unix.domain.socket.dir") == folder) is is_taken
