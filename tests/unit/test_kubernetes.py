"""The Kubernetes example: by the schemas of Kubernetes, and by the code that it runs."""

import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from messages import refused
from typer.testing import CliRunner

from infrastructure.settings import Settings
from streamgauge.cli import app
from streamgauge.platform import spark_daemons
from streamgauge.platform.spark_daemons import EXECUTOR_OPTIONS

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OBJECTS = list(yaml.safe_load_all((FOLDER / "streamgauge.yaml").read_text()))
RUN_ONCE = yaml.safe_load((FOLDER / "run-once.yaml").read_text())
VARIABLES_OF_SPARK = {"SPARK_CONF_DIR"}


def containers(document):
    """The containers of every pod that is described anywhere in it."""
    if isinstance(document, dict):
        yield from document.get("containers", ())
        for value in document.values():
            yield from containers(value)


def pods(document):
    """The specification of every pod that is described anywhere in it."""
    if isinstance(document, dict):
        if "containers" in document:
            yield document
        for value in document.values():
            yield from pods(value)


def named(kind, name):
    (found,) = (one for one in OBJECTS if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


SPARK = named("ConfigMap", "streamgauge-spark")["data"]
EXECUTOR = yaml.safe_load(SPARK["executor.yaml"])
PODS = {of["containers"][0]["name"]: of for document in (*OBJECTS, RUN_ONCE, EXECUTOR) for of in pods(document)}


@pytest.mark.parametrize("document", [*OBJECTS, EXECUTOR], ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_each_object_is_as_its_schema_says(document):
    kubernetes_validate.validate(document, "1.34", strict=True)


def test_variables_are_settings_and_commands_are_commands():
    known = Settings().environment().keys() | VARIABLES_OF_SPARK
    variables = [one["name"] for document in OBJECTS for container in containers(document) for one in container.get("env", ())]
    assert set(variables) | set(named("ConfigMap", "streamgauge")["data"]) <= known
    commands = {container["args"][0] for document in OBJECTS for container in containers(document)}
    assert commands == {"up", "run", "dashboard", "audit", "expire", "maintain"}
    assert all(CliRunner().invoke(app, [command, "--help"]).exit_code == 0 for command in commands)


def test_the_driver_s_name_and_ports_are_the_same_wherever_they_stand():
    spark = SPARK["spark-defaults.conf"]
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
    page = {"httpGet": {"path": "/_stcore/health", "port": 8501}}
    for kind in ("startupProbe", "livenessProbe"):
        asked = {name: {what: of for what, of in probe.items() if isinstance(of, dict)} for name, probe in by_probe[kind].items()}
        assert asked == {"driver": {"tcpSocket": {"port": port}}, "dashboard": page}, f"{kind} asks more than whether they listen"
    assert by_probe["readinessProbe"]["driver"]["exec"]["command"] == ["python", "-m", "streamgauge.operations.health", "queries"]
    assert named("Service", "streamgauge-driver")["spec"]["publishNotReadyAddresses"] is True, (
        "executors could not find a driver that is not ready"
    )


def test_tables_are_maintained_by_one_job_at_a_time_with_a_spark_of_its_own():
    job = named("CronJob", "streamgauge-maintain")
    (container,) = containers(job)
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert {"name": "SPARK_MASTER", "value": "local[2]"} in container["env"], "it would wait for executors that the pipeline has"


def test_one_audit_at_a_time_has_the_home_of_the_pipeline():
    audit = named("Deployment", "streamgauge-audit")["spec"]
    assert (audit["replicas"], audit["strategy"]) == (1, {"type": "Recreate"}), "a second one would wait for the first"
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "streamgauge-home"}}
    assert home in PODS["audit"]["volumes"]
    assert home in PODS["driver"]["volumes"]


@pytest.mark.parametrize("pod", PODS)
def test_each_pod_is_one_that_the_standard_restricted_allows_on_a_read_only_disk(pod):
    assert named("Namespace", "streamgauge")["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert PODS[pod]["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in PODS[pod]["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}, "nothing else can be written to"
        assert {mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in PODS[pod]["volumes"]}


def test_executors_have_the_image_of_the_driver_and_its_user():
    settings = dict(line.split() for line in SPARK["spark-defaults.conf"].splitlines())
    (driver,) = PODS["driver"]["containers"]
    assert settings["spark.kubernetes.container.image"] == driver["image"]
    assert settings["spark.kubernetes.executor.podTemplateFile"] == f"{driver['volumeMounts'][1]['mountPath']}/executor.yaml"
    assert EXECUTOR["spec"]["securityContext"] == PODS["driver"]["securityContext"]


def test_the_driver_may_do_what_it_does_and_no_more():
    settings = dict(line.split() for line in SPARK["spark-defaults.conf"].splitlines())
    (rule,) = named("Role", "streamgauge-driver")["rules"]
    assert rule["resources"] == ["pods"]
    # Without these, Spark would also want config maps, claims and services.
    assert settings["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert {settings[f"spark.kubernetes.driver.{name}PersistentVolumeClaim"] for name in ("own", "reuse")} == {"false"}
    assert settings["spark.kubernetes.driver.service.deleteOnTermination"] == "false"


def test_the_command_of_an_executor_is_made_of_the_variables_of_the_driver(tmp_path):
    given = {name: f"<{option}>" for option, name in EXECUTOR_OPTIONS.items()}
    given |= {"SPARK_JAVA_OPT_10": "-Dlast", "SPARK_JAVA_OPT_2": "-Dfirst=a b", "SPARK_EXECUTOR_MEMORY": "1g"}
    (java, *arguments), environment = spark_daemons.executor(Settings(cache=tmp_path), given)
    assert Path(java).is_file()
    assert arguments[:5] == ["-Dfirst=a b", "-Dlast", "-Xms1g", "-Xmx1g", "-cp"]
    assert "--driver-url <driver-url> --executor-id <executor-id> --cores <cores> --app-id <app-id>" in " ".join(arguments)
    assert environment["SPARK_HOME"] == str(spark_daemons.SPARK_HOME)
    with refused("SPARK_DRIVER_URL", "Kubernetes"):
        spark_daemons.executor(Settings(cache=tmp_path), {})
