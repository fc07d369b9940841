"""The whole way, by a Kafka that asks: produced, counted, verified and ingested with the least rights; and no secret is seen anywhere."""

import json
import os
import re
import subprocess
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest
from brokers import Secured
from plain import read_topic
from rights import Right, documented
from running import streamgauge_here

from streamgauge.local.registry import EmbeddedRegistry

RIGHTS = documented()
KEY_PASSWORD = "A_KEY_PASSWORD_OF_THE_TESTS"
QUERIES = ("nest-camera-stats", "nest-dead-letters")


@dataclass
class Flow:
    """What the programs have printed, and where they have left what they write.

    home: checkpoints and tables. log: Spark's, with all that Kafka's clients say. events: the folder of Spark's event logs.
    """

    secured: Secured
    home: Path
    log: Path
    events: Path
    printed: "dict[str, subprocess.CompletedProcess[str]]" = field(default_factory=dict)

    def run(self, *arguments, program, listener="SCRAM", properties=None, home=None):
        """Runs a program that has just its rights; properties: of its client, a user's by a password if not given."""
        name = program.replace(" ", "-")
        self.secured.grant(name, RIGHTS[program])
        settings = self.secured.come(listener, properties or self.secured.user(name), home or self.home)
        self.printed[arguments[0]] = streamgauge_here(*arguments, settings=settings)


@pytest.fixture(scope="session")
def events(tmp_path_factory):
    """Has Spark write its events there. The JVM sees the environment of its start, so the variable of a key's password is set here too."""
    folder, config = tmp_path_factory.mktemp("events"), tmp_path_factory.mktemp("config")
    (config / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{folder}\n"
    )
    with patch.dict(os.environ, {"SPARK_CONF_DIR": str(config), KEY_PASSWORD: f"key-{uuid.uuid4().hex}"}):
        yield folder


@pytest.fixture(scope="session")
def flow(secured, events, tmp_path_factory):
    """Produced, counted, verified and ingested, by all ways to come to a broker.

    `run` comes by a password that stands in the file of properties; `verify` by a certificate whose key has a password that stands in
    the environment; `ingest` by a password in a file of its own, and trusts an authority in PKCS12.
    """
    found = Flow(secured, tmp_path_factory.mktemp("pipeline"), secured.admin.logs / "spark.log", events)
    log_all(secured.admin)
    for story in ("nest", "taxi"):
        found.run("produce", story, "--limit", "500", "--unpaced", program=f"produce {story}")
    found.run("run", *QUERIES, "--once", program="run")
    secured.secrets.append(os.environ[KEY_PASSWORD])
    certified = secured.as_certified("verify", password=os.environ[KEY_PASSWORD], written=f"${{env:{KEY_PASSWORD}}}")
    found.run("verify", *QUERIES, "--format", "json", program="verify", listener="MTLS", properties=certified)
    found.run("ingest", "nyc-taxi", "--once", "--debug", program="ingest nyc-taxi", properties=in_files(secured))
    return found


def in_files(secured):
    properties = secured.user("ingest-nyc-taxi")
    password, store = secured.secrets[-1], secured.secret("store")
    (secured.folder / "password").write_text(password)
    truststore = secured.authority.pkcs12(secured.folder / "ca.p12", store)
    properties = properties.replace(password, f"${{directory:{secured.folder}:password}}")
    return properties + f"ssl.truststore.type=PKCS12\nssl.truststore.location={truststore}\nssl.truststore.password={store}\n"


def log_all(settings):
    """Spark and Kafka's clients log what they are told."""
    from pipeline.session import spark_session

    spark = spark_session(settings)
    log4j = spark._jvm.org.apache.logging.log4j
    for logger in ("", "org.apache.kafka", "org.apache.spark"):
        log4j.core.config.Configurator.setLevel(logger, log4j.Level.INFO)
    spark.stop()


@pytest.mark.parametrize("program", ["produce", "run", "verify", "ingest"])
def test_each_works_with_its_rights(flow, program):
    done = flow.printed[program]
    assert done.returncode == 0, done.stderr
    assert "does not allow" not in done.stderr


def test_what_they_made_is_right(flow):
    assert {one["query"]: one["verdict"] for one in json.loads(flow.printed["verify"].stdout)} == dict.fromkeys(QUERIES, "right")


def test_no_secret_is_in_any_file(flow):
    log, events = flow.log.read_text(), "".join(path.read_text() for path in flow.events.rglob("*") if path.is_file())
    assert "sasl.jaas.config = [hidden]" in log, "Kafka's clients were to log what they are told"
    assert "kafka.sasl.jaas.config=${file:" in log + events, "Spark was to write the plans of its queries, options and all"
    assert (flow.home / "checkpoints").is_dir()
    assert [path for folder in (flow.home, flow.log.parent, flow.events) for path in holders(folder, flow.secured.secrets)] == []


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
    me = psutil.Process()
    lines = [" ".join(process.cmdline()) for process in (me, *me.children(recursive=True))]
    assert any("spark" in line for line in lines)
    assert [line for line in lines if any(secret in line for secret in flow.secured.secrets)] == []


def holders(folder, secrets):
    """The files under `folder` that hold one of the secrets."""
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if any(secret.encode() in content for secret in secrets):
            yield path


def test_all_stories_are_right_with_these_rights(secured, tmp_path_factory):
    secured = replace(secured, admin=replace(secured.admin, schema_registry_url=""))  # an embedded one, that runs
    flow = Flow(secured, tmp_path_factory.mktemp("stories"), secured.admin.logs / "spark.log", secured.folder)
    registry = EmbeddedRegistry(secured.admin)
    registry.start(detached=False)
    try:
        for story in ("nest", "taxi", "wikimedia"):
            flow.run("produce", story, "--limit", "500", "--unpaced", program=f"produce {story}")
            assert flow.printed["produce"].returncode == 0, flow.printed["produce"].stderr
        for arguments in (("run", "--once"), ("verify", "--format", "json")):
            flow.run(*arguments, program=arguments[0])
            assert flow.printed[arguments[0]].returncode == 0, flow.printed[arguments[0]].stderr
    finally:
        registry.stop()
    found = {one["query"]: one for one in json.loads(flow.printed["verify"].stdout) if one["verdict"] != "not run"}
    assert {"nest-camera-stats", "taxi-borough-stats", "wikimedia-wiki-stats"} <= set(found)
    assert {name: one["verdict"] for name, one in found.items()} == dict.fromkeys(found, "right")
    assert all(one["records"] >= 500 for one in found.values()), "each story should have been read to its end"


@pytest.mark.parametrize("lacking", [Right("READ", "nest-logs"), Right("WRITE", "nest-camera-stats")])
def test_a_query_that_lacks_a_right_is_given_up_with_one_line(flow, lacking):
    name = f"lacking-{lacking.operation.lower()}"
    flow.secured.grant(name, [*(right for right in RIGHTS["run"] if right != lacking), Right("DESCRIBE", lacking.name)])
    done = streamgauge_here("run", "nest-camera-stats", "--once", settings=flow.secured.come("SCRAM", flow.secured.user(name)))
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert re.match(r"error: quer(?:y|ies) nest-camera-stats(?:, nest-dead-letters)? given up: Kafka at ", last)
    assert f"does not allow {name} to use topics {lacking.name}; grant the rights that docs/security.md lists" in last
    assert "Traceback" not in done.stderr


def test_metrics_that_may_not_be_written_are_told_once_and_the_query_goes_on(flow):
    flow.secured.grant("unmeasured", [right for right in RIGHTS["run"] if right.name != "streaming-metrics"])
    settings = flow.secured.come("SCRAM", flow.secured.user("unmeasured"))
    done = streamgauge_here("run", "nest-camera-stats", "--once", settings=settings)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("to write to topic streaming-metrics; grant the rights") == 1
