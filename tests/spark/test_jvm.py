"""The command that starts Spark's JVM: as Spark's own launcher would assemble it, and with an archive of classes."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from running import SHORT_LIVED, environment, streamgauge

from infrastructure.java import class_data
from infrastructure.java.runtime import java_home
from infrastructure.settings import Settings
from pipeline.spark import classes, session
from pipeline.spark.classes import save_classes
from pipeline.spark.jvm import SPARK_HOME, command, fixed_class_path, java

CONFIG = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-Da=b -Dc=d",
    "spark.driver.extraClassPath": "/added/a.jar:/added/b.jar",
    "spark.app.name": "a name with blanks",
}
SMALL_QUERY = """
import sys
from dataclasses import replace
from pathlib import Path
from infrastructure.settings import Settings
from pipeline.spark.session import running_session

with running_session(replace(Settings.from_environment(), home=Path(sys.argv[1]), driver_java_options=sys.argv[2])) as spark:
    spark.range(3).groupBy("id").count().collect()
    print(spark.sparkContext._jvm.java.lang.System.getProperty("own"), spark.conf.get("spark.scheduler.mode"))
    folder = spark.sparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir")
    print(folder, *Path(folder).rglob("blockmgr-*"))
"""
OF_SOME_JAVAS = {"--add-modules=jdk.incubator.vector", "--sun-misc-unsafe-memory-access=allow"}
IGNORED = "-XX:+IgnoreUnrecognizedVMOptions"


@pytest.fixture(scope="module")
def own():
    """Settings with the jars and the Java of this machine."""
    return Settings.from_environment()


def test_it_is_what_sparks_launcher_assembles(own):
    program = str(java_home(own) / "bin" / "java")
    arguments = [part for name, value in CONFIG.items() for part in ("--conf", f"{name}={value}")]
    launcher = [program, "-cp", f"{SPARK_HOME}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    surroundings = os.environ | {"SPARK_HOME": str(SPARK_HOME), "SPARK_SCALA_VERSION": "2.13", "JAVA_HOME": str(java_home(own))}
    printed = subprocess.run([*launcher, *arguments, "pyspark-shell"], env=surroundings, capture_output=True, text=True, check=True).stdout
    assembled = printed.strip("\n\0").split("\0")
    ours = [part for part in command(CONFIG, own) if not part.startswith(("-XX:SharedArchiveFile", "-Xlog:cds"))]
    assert sorted(set(ours) - class_path(ours)) == sorted(set(assembled) - class_path(assembled) - OF_SOME_JAVAS - {IGNORED})


def class_path(parts):
    """The class path among the parts of a command."""
    return {parts[parts.index("-cp") + 1]}


def test_every_jar_is_on_the_class_path_once(own):
    (jars,) = class_path(command(CONFIG, own))
    paths = jars.split(":")
    assert len(paths) == len(set(paths))
    assert {"/added/a.jar", "/added/b.jar", *map(str, (SPARK_HOME / "jars").glob("*.jar"))} <= set(paths)


def test_sparks_own_jars_come_first(own):
    (jars,) = class_path(command(CONFIG, own))
    sparks = set(map(str, (SPARK_HOME / "jars").glob("spark-*.jar")))
    assert set(jars.split(":")[: len(sparks)]) == sparks, "Spark searches for classes for each job, jar by jar"


@pytest.fixture(scope="module")
def ended(own, tmp_path_factory):
    """The home of a session that has ended, with what it loaded in the file `classes`, and where it kept temporary files in `places`.

    Its path is too long for a socket in it, and the folder of temporary files is no other.
    """
    save_classes(own)
    folder = tmp_path_factory.mktemp("session") / ("long" * 20)
    folder.mkdir()
    options = f"-Xlog:class+load:file={folder}/classes"
    run = [sys.executable, "-c", SMALL_QUERY, str(folder), options]
    done = subprocess.run(run, env=environment(own, TMPDIR=str(folder)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "places").write_text(done.stdout)
    return folder


@pytest.mark.skipif(quote(str(SPARK_HOME)) != str(SPARK_HOME), reason="Java archives no class of a jar whose path an address must quote")
def test_a_session_takes_its_classes_from_the_archive(ended):
    # Java does not archive lambdas that can be serialized, as Scala's are.
    loaded = (ended / "classes").read_text().splitlines()
    of_spark = [line for line in loaded if " org.apache.spark.sql." in line and not re.search("Lambda|Generated", line)]
    assert len([line for line in of_spark if "shared objects file" in line]) > 0.9 * len(of_spark) > 1000


def test_a_session_keeps_temporary_files_in_its_home_and_leaves_none(ended):
    _, _, of_java, of_blocks = (ended / "places").read_text().split()
    assert Path(of_java).parent == ended / "tmp"
    assert Path(of_blocks).is_relative_to(of_java)
    assert [path for path in (ended / "tmp").iterdir() if path.is_dir()] == []


def test_a_session_works_where_no_folder_is_short_enough_for_a_socket(ended):
    assert len(os.fsencode(ended)) > session._SOCKET_FOLDER_BYTES
    assert (ended / "places").read_text().split()[:2] == ["None", "FAIR"]


def test_a_session_takes_sparks_own_settings_where_streamgauge_has_none(own, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.defaultJavaOptions -Down=yes\nspark.scheduler.mode FIFO\n")
    run = [sys.executable, "-c", SMALL_QUERY, str(tmp_path), SHORT_LIVED]
    surroundings = environment(own, SPARK_CONF_DIR=str(tmp_path))
    done = subprocess.run(run, env=surroundings, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["yes", "FAIR"], done.stderr


def test_a_session_starts_where_no_name_server_knows_the_machines_name(own, tmp_path):
    (tmp_path / "hosts").touch()  # which names nothing
    run = [sys.executable, "-c", SMALL_QUERY, str(tmp_path), f"{SHORT_LIVED} -Djdk.net.hosts.file={tmp_path}/hosts"]
    done = subprocess.run(run, env=environment(own), capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["None", "FAIR"], done.stderr


def test_what_spark_says_as_it_starts_is_one_line(own, tmp_path):
    program = """import pathlib, sys
from infrastructure.settings import Settings
from pipeline.spark.session import spark_session
spark_session(Settings(home=pathlib.Path(sys.argv[1]), spark_master="local[many]"))"""
    run = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(run, env=environment(own), capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(
        "infrastructure.errors.StreamgaugeError: Spark did not start (Could not parse Master URL: 'local[many]'); its log is "
    )


def test_an_archive_that_does_not_fit_is_ignored_in_silence(own, tmp_path):
    archive = tmp_path / "classes.jsa"
    archive.write_text("no archive")
    done = subprocess.run([java(own), *class_data.options(archive), "-version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cds" not in done.stdout + done.stderr


def test_without_downloads_fetch_needs_no_network(own, tmp_path):
    elsewhere = {"kafka_bootstrap_servers": "127.0.0.1:9", "schema_registry_url": "http://127.0.0.1:9"}  # no embedded servers
    other = replace(own, cache=tmp_path, maven_url="http://127.0.0.1:9", **elsewhere)
    archive = class_data.archive_for(java(other), fixed_class_path(other), other.cache)
    archive.parent.mkdir()
    archive.touch()
    done = streamgauge("fetch", "--no-download", settings=other)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert streamgauge("fetch", settings=other).returncode == 2


def test_classes_are_listed_in_a_home_whose_path_has_blanks(own, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(class_data, "archive_for", lambda *_: tmp_path / "classes.jsa")
    monkeypatch.setattr(class_data, "create", lambda *_: None)
    run = lambda arguments, **_: started.append(arguments) or subprocess.CompletedProcess(arguments, 0)  # noqa: E731
    monkeypatch.setattr(classes, "subprocess", SimpleNamespace(run=run))
    save_classes(replace(own, home=tmp_path / "my own home"))
    ((*_, folder, option),) = started
    assert "/my own home/" in folder
    assert f"-XX:DumpLoadedClassList={folder}/classes" in command({**CONFIG, "spark.driver.extraJavaOptions": option}, own)
