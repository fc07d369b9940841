"""Kerberos, with a real key distribution center: Spark and librdkafka log in by a keytab, by a JAAS file, and by the ticket of `kinit`.

The confluent-kafka of PyPI is built without Kerberos, and says so. kcat, of Debian, uses a librdkafka that has it.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from brokers import EmbeddedKafka
from kerberos import REALM, Kdc, missing, whole_java
from messages import absent
from plain import read_topic
from running import RETRY_SECONDS, SHORT_LIVED, environment, eventually, few_rows, one_line_error, start_server, streamgauge

from contract.create_topics import create_topics
from contract.domains.nest import NEST_CAMERA_STATS, NEST_CROWDS, NEST_LOGS, NEST_TEMPERATURES
from infrastructure.errors import StreamgaugeError
from infrastructure.java.runtime import java_home
from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
COPIER = Path(__file__).with_name("copy_topic.py")
LACKING = (
    "no KDC; apt install krb5-kdc krb5-admin-server"
    if missing()
    else ""
    if whole_java()
    else "no whole Java 17 or 21; apt install openjdk-17-jre-headless"
)
# Without the module, kcat tries again and again until its time is over.
HAS_KCAT = bool(shutil.which("kcat") and [*Path("/usr/lib").glob("*/sasl2/libgssapiv2.so*")])
pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING)


def login(keytab, principal):
    return f'{MODULE} required useKeyTab=true storeKey=true doNotPrompt=true keyTab="{keytab}" principal="{principal}@{REALM}";'


class KerberizedKafka(EmbeddedKafka):
    """The embedded broker's program, with a listener for tickets besides."""

    def __init__(self, settings, port, kdc):
        super().__init__(settings)
        self.kerberos_port, self._kdc = port, kdc
        self._keytab = kdc.keytab("broker", "kafka/localhost", "kafka/127.0.0.1")

    def _prepare(self):
        launch = super()._prepare()
        java, *arguments = launch.command
        return launch._replace(command=[java, f"-Djava.security.krb5.conf={self._kdc.config}", *arguments])

    def _server_properties(self):
        own = super()._server_properties()
        address = f"KERBEROS://localhost:{self.kerberos_port}"
        return own | {
            "listeners": f"{own['listeners']},{address}",
            "advertised.listeners": f"{own['advertised.listeners']},{address}",
            "listener.security.protocol.map": f"{own['listener.security.protocol.map']},KERBEROS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.kerberos.gssapi.sasl.jaas.config": login(self._keytab, "kafka/localhost"),
            "listener.name.kerberos.sasl.kerberos.service.name": "kafka",
        }


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    found = Kdc(tmp_path_factory.mktemp("kdc"), free_ports(1)[0])
    process = found.start()
    yield found
    process.stop()


@pytest.fixture(scope="module")
def plain(kdc, tmp_path_factory):
    """Settings of a program that needs no ticket. The broker's other listener is `kerberos`."""
    port, kerberos_port = free_ports(2)
    cache = Settings.from_environment().cache
    home = tmp_path_factory.mktemp("kerberized") / "home"
    found = Settings(home=home, kafka_port=port, cache=cache, java_home=str(whole_java()), driver_java_options=SHORT_LIVED)
    broker = KerberizedKafka(found, kerberos_port, kdc)
    start_server(broker)
    create_topics(found.kafka)
    yield found, f"localhost:{kerberos_port}"
    broker.stop()


@pytest.fixture(scope="module")
def keytab(kdc):
    return kdc.keytab("app", "app")


@pytest.fixture
def by_keytab(plain, keytab, kdc, tmp_path):
    """Settings and environment of a program with a keytab."""
    return secured(plain, tmp_path, f"sasl.jaas.config={login(keytab, 'app')}\n"), {"KRB5_CONFIG": str(kdc.config)}


@pytest.fixture
def by_ticket(plain, keytab, kdc, tmp_path):
    """Settings and environment of a program whose user has run kinit."""
    return secured(plain, tmp_path), kdc.kinit(keytab, "app", tmp_path / "krb5cc")


@pytest.fixture
def by_jaas_file(plain, keytab, kdc, tmp_path):
    """Settings and environment of a program with a keytab that a JAAS file names."""
    jaas = tmp_path / "client jaas.conf"
    jaas.write_text(f"// of every Kafka client\nKafkaClient {{\n  {login(keytab, 'app')}\n}};\n")
    settings = secured(plain, tmp_path)
    option = f"'-Djava.security.auth.login.config={jaas}'"
    return replace(settings, driver_java_options=f"{settings.driver_java_options} {option}"), {"KRB5_CONFIG": str(kdc.config)}


def secured(plain, folder, more=""):
    properties = folder / "client.properties"
    properties.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n{more}")
    return replace(plain[0], kafka_bootstrap_servers=plain[1], kafka_client_properties=properties)


def test_spark_reads_and_writes_by_a_keytab_and_by_a_ticket(plain, kdc, keytab, tmp_path):
    folders = {name: tmp_path / name for name in ("keytab", "ticket")}
    for folder in folders.values():
        folder.mkdir()
    of_keytab = secured(plain, folders["keytab"], f"sasl.jaas.config={login(keytab, 'app')}\n")
    of_ticket, variables = secured(plain, folders["ticket"]), kdc.kinit(keytab, "app", tmp_path / "krb5cc")
    assert_copied({NEST_CAMERA_STATS.name: of_keytab, NEST_CROWDS.name: of_ticket}, plain, kdc, variables)


def test_spark_reads_and_writes_by_a_jaas_file(plain, kdc, by_jaas_file):
    settings, variables = by_jaas_file
    assert_copied({NEST_TEMPERATURES.name: settings}, plain, kdc, {**variables, "KRB5CCNAME": "/nowhere"})


def assert_copied(targets, plain, kdc, variables):
    """Spark copies ten records to each topic, with these settings, in one process with the Java options of the last."""
    *_, settings = targets.values()
    producer = plain[0].kafka.producer({})
    for number in range(len(read_topic(plain[0], NEST_LOGS.name)), 10):
        producer.produce(NEST_LOGS.name, str(number).encode())
    assert producer.flush(RETRY_SECONDS) == 0
    options = f"-Djava.security.krb5.conf={kdc.config}"
    done = subprocess.run(
        [sys.executable, str(COPIER)],
        input=json.dumps({name: str(settings.kafka_client_properties) for name, settings in targets.items()}),
        env=environment(few_rows(settings), JDK_JAVA_OPTIONS=options, **variables),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(targets, 10)
    for name in targets:
        written = {message.key() for message in read_topic(plain[0], name)}
        assert written == {f'{{"text":"{number}"}}'.encode() for number in range(10)}, name


@pytest.mark.skipif(not HAS_KCAT, reason="no kcat, or none that can use Kerberos; apt install kcat libsasl2-modules-gssapi-mit")
@pytest.mark.parametrize("way", ["by_keytab", "by_ticket", "by_jaas_file"])
def test_librdkafka_lists_the_topics(request, way):
    settings, variables = request.getfixturevalue(way)
    with patch.dict(os.environ, variables):
        properties = dict(settings.kafka.security.librdkafka)
    options = [part for name, value in properties.items() for part in ("-X", f"{name}={value}")]
    command = ["kcat", "-L", "-m", str(RETRY_SECONDS), "-b", settings.bootstrap_servers, *options]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert f'topic "{NEST_LOGS.name}"' in done.stdout, done.stderr


def test_one_clear_line_without_a_ticket_and_with_an_expired_one(plain, keytab, kdc, tmp_path):
    settings, cache = secured(plain, tmp_path), tmp_path / "krb5cc"
    line = one_line_error(streamgauge("status", settings=settings, KRB5CCNAME=str(cache)))
    assert absent(line, f"no Kerberos ticket in {cache}", "`kinit`") == []
    variables = kdc.kinit(keytab, "app", cache, "-l", "1s")
    klist = ["klist", "-s", "-c", str(cache)]
    eventually(lambda: subprocess.run(klist, check=False).returncode, "the ticket to expire")
    line = one_line_error(streamgauge("status", settings=settings, **variables))
    assert absent(line, f"ticket in {cache} has expired", "`kinit`") == []


def test_the_java_that_came_with_streamgauge_has_no_kerberos(by_keytab):
    with pytest.raises(StreamgaugeError, match=r"jdk\.security\.jgss.*STREAMGAUGE_JAVA_HOME"):
        java_home(replace(by_keytab[0], java_home=""))


def test_the_confluent_kafka_of_pypi_says_what_it_lacks(by_keytab):
    line = one_line_error(streamgauge("status", settings=by_keytab[0]))
    assert absent(line, "KAFKA_CLIENT_PROPERTIES=", "No provider for SASL mechanism GSSAPI", "docs/security.md") == []
