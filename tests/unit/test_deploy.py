"""The files in deploy/ that run the pipeline, once a day or always: by what reads them, and by the code that they run."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from infrastructure.settings import Settings
from streamgauge.cli import app

DEPLOY = Path(__file__).parents[2] / "deploy"
CRON, UNITS, MANIFEST = DEPLOY / "cron" / "streamgauge", DEPLOY / "systemd", DEPLOY / "kubernetes" / "run-once.yaml"
VARIABLES = Settings().environment().keys()


def unit(name):
    parser = configparser.ConfigParser(strict=False, delimiters="=")
    parser.optionxform = str
    parser.read(UNITS / name)
    return parser


def commands():
    """What each file runs, as the words after `streamgauge`."""
    (line,) = (line for line in CRON.read_text().splitlines() if re.match(r"[\d*]", line))
    (container,) = yaml.safe_load(MANIFEST.read_text())["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    in_units = unit("streamgauge-run.service")["Service"]["ExecStart"]
    texts = {"cron": re.search(r"/streamgauge (run.*?) 2>", line)[1], "systemd": re.search(r"/streamgauge (.*)", in_units)[1]}
    return {**{name: shlex.split(text) for name, text in texts.items()}, "kubernetes": container["args"]}


@pytest.mark.parametrize("place", ["cron", "systemd", "kubernetes"])
def test_each_runs_the_pipeline_once(place):
    words = commands()[place]
    assert words == ["run", "--once"]
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0


def test_the_pipeline_that_runs_always_is_started_again_after_a_failure():
    service = unit("streamgauge.service")["Service"]
    assert service["ExecStart"].endswith("/streamgauge run")
    assert service["Restart"] == "on-failure", "after SIGTERM its exit code is 0, and it stays stopped"


def test_variables_are_settings():
    in_cron = set(re.findall(r"^([A-Z_]+)=", CRON.read_text(), re.MULTILINE)) - {"SHELL"}
    for service in UNITS.glob("*.service"):
        assert in_cron == set(re.findall(r"^Environment=([A-Z_]+)=", service.read_text(), re.MULTILINE)), service
    assert in_cron <= VARIABLES


def test_a_run_never_meets_the_next_one():
    assert "flock --nonblock" in CRON.read_text()
    assert unit("streamgauge-run.service")["Service"]["Type"] == "oneshot", "a timer does not start a unit that is starting"
    assert yaml.safe_load(MANIFEST.read_text())["spec"]["concurrencyPolicy"] == "Forbid"


def test_the_manifest_is_as_its_schema_says_and_fits_the_other_one():
    job = yaml.safe_load(MANIFEST.read_text())
    kubernetes_validate.validate(job, "1.34", strict=True)
    others = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "streamgauge.yaml").read_text()))
    there_are = {(one["kind"], one["metadata"]["name"]) for one in others}
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (source,) = pod["containers"][0]["envFrom"]
    assert ("ConfigMap", source["configMapRef"]["name"]) in there_are
    assert {
        ("PersistentVolumeClaim", one["persistentVolumeClaim"]["claimName"]) for one in pod["volumes"] if "emptyDir" not in one
    } <= there_are
    assert ("Namespace", job["metadata"]["namespace"]) in there_are


def test_systemd_takes_the_units(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    for path in UNITS.iterdir():
        # Its program is not at that path here.
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/streamgauge/.venv/bin/streamgauge", "/bin/true"))
    done = subprocess.run(
        [analyze, "verify", "--man=no", *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if "streamgauge" in line] == [], done.stderr
    assert done.returncode == 0, done.stderr
