"""The whole way, by a Kafka that asks: produced, counted, verified and ingested with the least rights; and no secret is seen anywhere."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from brokers import Secured
from plain import one_camera, read_topic, write_topic
from rights import Right, documented
from running import environment, few_rows, start_server, streamgauge
from topic_reset import empty_topics

from contract.domains import NAMES
from streamgauge.platform.registry import EmbeddedRegistry

pytestmark = pytest.mark.delta
RIGHTS = documented()
KEY_PASSWORD = "A_KEY_PASSWORD_OF_THE_TESTS"
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = 200
COUNTED = ("nest-camera-status", "nest-archive", "taxi-borough-stats", "wikimedia-edit-stats")
"""Of each domain a query, and of each kind of sink: `run` adds their dead letters. All others differ in their topics only (test_rights.py)."""
VERIFIED = ("nest-camera-status", "taxi-borough-stats", "wikimedia-edit-stats", "wikimedia-dead-letters")
ONE_JVM = Path(__file__).with_name("one_jvm.py")


@dataclass
class Flow:
    """What the programs have printed, and where they have left what they write.

    home: checkpoints, tables and logs, Spark's too, with all that Kafka's clients say. events: the folder of Spark's event logs.
    """

    secured: Secured
    home: Path
    events: Path
    printed: "dict[str, subprocess.CompletedProcess[str]]"
    command_lines: list[str]


def program(secured, name, home, *, listener="SCRAM", properties=None):
    """The settings of a program that has just its rights; properties: of its client, a user's by a password if not given."""
    secured.grant(name.replace(" ", "-"), RIGHTS[name])
    return secured.come(listener, properties or secured.user(name.replace(" ", "-")), home)


@pytest.fixture(scope="module")
def flow(secured, tmp_path_factory):
    """All domains produced, counted and verified, and a topic ingested, by all ways to come to a broker, whose topics are empty before.

    `run` comes by a password that stands in the file of properties; `verify` by a certificate whose key has a password that stands in
    the environment; `ingest` by a password in a file of its own, and trusts an authority in PKCS12.
    """
    empty_topics(secured.admin.kafka)
    home, events = (tmp_path_factory.mktemp(name) for name in ("pipeline", "events"))
    config = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": f"file://{events}"}
    key_password = secured.secret("key")
    certified = secured.as_certified("verify", password=key_password, written=f"${{env:{KEY_PASSWORD}}}")
    # An empty address stands for the embedded registry, which runs.
    secured = replace(secured, admin=replace(few_rows(secured.admin, **config), schema_registry_url=""))
    commands = {
        **{
            f"produce {domain}": (("produce", domain, "--limit", str(EVENTS), "--unpaced"), program(secured, f"produce {domain}", home))
            for domain in NAMES
        },
        "run": (("run", *COUNTED, "--once"), program(secured, "run", home)),
        "verify": (("verify", *VERIFIED, "--format", "json"), program(secured, "verify", home, listener="MTLS", properties=certified)),
        "ingest": (("ingest", "nyc-taxi", "--once", "--debug"), program(secured, "ingest nyc-taxi", home, properties=in_files(secured))),
    }
    registry = EmbeddedRegistry(secured.admin)
    start_server(registry)
    try:
        done = subprocess.run(
            [sys.executable, str(ONE_JVM)],
            input=json.dumps({name: (arguments, settings.environment()) for name, (arguments, settings) in commands.items()}),
            env=environment(commands["run"][1], PYTHONPATH=str(ONE_JVM.parents[1]), **{KEY_PASSWORD: key_password}),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        registry.stop()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    command_lines = told.pop("command lines")
    printed = {name: subprocess.CompletedProcess(commands[name][0], *found) for name, found in told.items()}
    return Flow(secured, home, events, printed, command_lines)


def in_files(secured):
    properties = secured.user("ingest-nyc-taxi")
    password, store = secured.secrets[-1], secured.secret("store")
    (secured.folder / "password").write_text(password)
    truststore = secured.authority.pkcs12(secured.folder / "ca.p12", store)
    properties = properties.replace(password, f"${{directory:{secured.folder}:password}}")
    return properties + f"ssl.truststore.type=PKCS12\nssl.truststore.location={truststore}\nssl.truststore.password={store}\n"


@pytest.mark.parametrize("name", ["produce nest", "produce taxi", "produce wikimedia", "run", "verify", "ingest"])
def test_each_works_with_its_rights(flow, name):
    done = flow.printed[name]
    assert done.returncode == 0, done.stderr
    assert "docs/security.md" not in done.stderr


def test_all_domains_are_right_with_these_rights(flow):
    found = json.loads(flow.printed["verify"].stdout)
    assert {one["query"]: one["verdict"] for one in found} == dict.fromkeys(VERIFIED, "right")
    assert all(one["records"] >= EVENTS for one in found), "each domain should have been read to its end"


def test_no_secret_is_in_any_file(flow):
    log, events = (
        (flow.home / "logs" / "spark.log").read_text(),
        "".join(path.read_text() for path in flow.events.rglob("*") if path.is_file()),
    )
    assert "sasl.jaas.config = [hidden]" in log, "Kafka's clients were to log what they are told"
    assert "KafkaScan" in events, "Spark was to write the plans of its queries"
    assert (flow.home / "checkpoints").is_dir()
    assert [path for folder in (flow.home, flow.events) for path in holders(folder, flow.secured.secrets)] == []


def test_no_secret_is_printed(flow):
    printed = "".join(done.stdout + done.stderr for done in flow.printed.values())
    assert [secret for secret in flow.secured.secrets if secret in printed] == []


def test_no_secret_is_in_any_record(flow):
    for topic in ("streaming-metrics", "query-states", "alerts", "dead-letters"):
        records = read_topic(flow.secured.admin, topic)
        assert records or topic in {"alerts", "dead-letters"}
        held = b"".join(part for record in records for part in (record.key(), record.value()) if part)
        assert [secret for secret in flow.secured.secrets if secret.encode() in held] == []


def test_no_secret_is_on_a_command_line(flow):
    assert any("SparkSubmit" in line for line in flow.command_lines), "a driver was to be among the processes"
    assert [line for line in flow.command_lines if any(secret in line for secret in flow.secured.secrets)] == []


def holders(folder, secrets):
    """The files under `folder` that hold one of the secrets."""
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if any(secret.encode() in content for secret in secrets):
            yield path


@pytest.mark.parametrize("lacking", [Right("READ", "nest-logs"), Right("WRITE", "nest-camera-stats")])
def test_a_query_that_lacks_a_right_is_given_up_with_one_line(secured, lacking):
    write_topic(secured.admin, "nest-logs", [one_camera("camera", START)])
    name = f"lacking-{lacking.operation.lower()}"
    secured.grant(name, [*(right for right in RIGHTS["run"] if right != lacking), Right("DESCRIBE", lacking.name)])
    done = streamgauge("run", "nest-camera-stats", "--once", settings=secured.come("SCRAM", secured.user(name)))
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert [fact for fact in ("nest-camera-stats", name, lacking.name, "docs/security.md") if fact not in last] == [], last
    assert "Traceback" not in done.stderr


def test_metrics_that_may_not_be_written_are_told_once_and_the_query_goes_on(secured):
    write_topic(secured.admin, "nest-logs", [one_camera("camera", START)])
    secured.grant("unmeasured", [right for right in RIGHTS["run"] if right.name != "streaming-metrics"])
    done = streamgauge("run", "nest-camera-stats", "--once", settings=secured.come("SCRAM", secured.user("unmeasured")))
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stderr.splitlines() if "streaming-metrics" in line]) == 1, done.stderr
