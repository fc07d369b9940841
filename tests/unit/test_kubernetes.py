"""The Kubernetes example: by the schemas of Kubernetes, and by the code that it runs."""

import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from contract.settings import Settings
from streamgauge.cli import app

MANIFEST = Path(__file__).parents[2] / "deploy" / "kubernetes" / "streamgauge.yaml"
OBJECTS = list(yaml.safe_load_all(MANIFEST.read_text()))
VARIABLES_OF_SPARK = {"SPARK_CONF_DIR"}


def containers(document):
    """The containers of every pod that is described anywhere in it."""
    if isinstance(document, dict):
        yield from document.get("containers", ())
        for value in document.values():
            yield from containers(value)


def named(kind, name):
    (found,) = (one for one in OBJECTS if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


@pytest.mark.parametrize("document", OBJECTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_each_object_is_as_its_schema_says(document):
    kubernetes_validate.validate(document, "1.34", strict=True)


def test_variables_are_settings_and_commands_are_commands():
    known = Settings().environment().keys() | VARIABLES_OF_SPARK
    variables = [one["name"] for document in OBJECTS for container in containers(document) for one in container.get("env", ())]
    assert set(variables) | set(named("ConfigMap", "streamgauge")["data"]) <= known
    commands = {container["args"][0] for document in OBJECTS for container in containers(document)}
    assert commands == {"up", "run", "dashboard", "expire", "maintain"}
    assert all(CliRunner().invoke(app, [command, "--help"]).exit_code == 0 for command in commands)


def test_the_driver_s_name_and_ports_are_the_same_wherever_they_stand():
    spark = named("ConfigMap", "streamgauge-spark")["data"]["spark-defaults.conf"]
    pipeline = named("StatefulSet", "streamgauge-pipeline")
    assert re.search(r"^spark\.kubernetes\.driver\.pod\.name\s+streamgauge-pipeline-0$", spark, re.MULTILINE)
    assert {str(port["port"]) for port in named("Service", "streamgauge-driver")["spec"]["ports"]} == set(
        re.findall(r"^spark\.driver\.(?:port|blockManager\.port)\s+(\d+)$", spark, re.MULTILINE)
    )
    assert named("Service", "streamgauge-driver")["spec"]["selector"] == pipeline["spec"]["template"]["metadata"]["labels"]
    assert pipeline["spec"]["serviceName"] == "streamgauge-driver"


def test_an_outage_of_kafka_kills_no_container():
    by_probe = {
        kind: {container["name"]: container[kind] for document in OBJECTS for container in containers(document) if kind in container}
        for kind in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    (port,) = {port["port"] for port in named("Service", "streamgauge-driver")["spec"]["ports"] if port["name"] == "driver"}
    for kind in ("startupProbe", "livenessProbe"):
        assert {name: probe.get("tcpSocket") for name, probe in by_probe[kind].items()} == {"driver": {"port": port}}, (
            f"{kind} asks more than whether the driver listens"
        )
    assert by_probe["readinessProbe"]["driver"]["exec"]["command"] == ["python", "-m", "streamgauge.operations.health", "queries"]
    assert named("Service", "streamgauge-driver")["spec"]["publishNotReadyAddresses"] is True, (
        "executors could not find a driver that is not ready"
    )


def test_tables_are_maintained_by_one_job_at_a_time_with_a_spark_of_its_own():
    job = named("CronJob", "streamgauge-maintain")
    (container,) = containers(job)
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert {"name": "SPARK_MASTER", "value": "local[2]"} in container["env"], "it would wait for executors that the pipeline has"
