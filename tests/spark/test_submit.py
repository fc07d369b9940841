"""`streamgauge submit` runs a program of one's own in the project's session."""

import sys

import pytest
import typer

from infrastructure.errors import StreamgaugeError
from streamgauge.submit import submit

READS_KAFKA = """
import sys

from pyspark.sql import SparkSession

from beside import TOPIC

spark = SparkSession.builder.appName("mine").getOrCreate()
options = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": TOPIC}
records = spark.readStream.format("kafka").options(**options).load()
print(records.columns[:2], spark.conf.get("spark.sql.session.timeZone"), sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def own_arguments(monkeypatch):
    """What the command changes for the program is as before for the next test."""
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.usefixtures("spark")
def test_a_program_has_kafkas_jars_the_projects_settings_its_arguments_and_the_modules_beside_it(tmp_path, capsys):
    (tmp_path / "beside.py").write_text('TOPIC = "nest-logs"')
    (tmp_path / "mine.py").write_text(READS_KAFKA)
    submit(tmp_path / "mine.py", ["--rows", "5"])
    assert capsys.readouterr().out == "['key', 'value'] UTC ['--rows', '5']\n"


@pytest.mark.usefixtures("spark")
def test_an_error_in_the_program_is_its_own(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("1 / 0")
    with pytest.raises(typer.Exit) as end:
        submit(tmp_path / "mine.py")
    assert end.value.exit_code == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(StreamgaugeError, match=r"there is no file .*mine.py"):
        submit(tmp_path / "mine.py")
