"""Kerberos, with a real key distribution center: Spark reads and writes by a keytab, and librdkafka's clients say what they lack."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from brokers import EmbeddedKafka
from kerberos import REALM, Kdc, missing, whole_java
from messages import absent
from plain import read_topic
from running import RETRY_SECONDS, SHORT_LIVED, environment, few_rows, one_line_error, start_server, streamgauge

from contract.domains.nest import NEST_CAMERA_STATS, NEST_LOGS
from contract.errors import StreamgaugeError
from contract.java.runtime import java_home
from contract.kafka.create_topics import create_topics
from contract.process.ports import free_ports
from contract.settings import Settings

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
COPIER = Path(__file__).with_name("copy_by_ticket.py")
LACKING = (
    "no KDC; apt install krb5-kdc krb5-admin-server"
    if missing()
    else ""
    if whole_java()
    else "no whole Java 17 or 21; apt install openjdk-17-jre-headless"
)
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
def kerberized(kdc, tmp_path_factory):
    """Settings of a program that comes by a ticket, and of one that needs none."""
    folder = tmp_path_factory.mktemp("kerberized")
    port, kerberos_port = free_ports(2)
    cache = Settings.from_environment().cache
    plain = Settings(home=folder / "home", kafka_port=port, cache=cache, java_home=str(whole_java()), driver_java_options=SHORT_LIVED)
    broker = KerberizedKafka(plain, kerberos_port, kdc)
    start_server(broker)
    create_topics(plain.kafka)
    properties = folder / "client.properties"
    jaas = login(kdc.keytab("app", "app"), "app")
    properties.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\nsasl.jaas.config={jaas}\n"
    )
    yield replace(plain, kafka_bootstrap_servers=f"localhost:{kerberos_port}", kafka_client_properties=properties), plain
    broker.stop()


def test_spark_reads_and_writes_by_a_keytab(kerberized, kdc):
    settings, plain = kerberized
    producer = plain.kafka.producer({})
    for number in range(10):
        producer.produce(NEST_LOGS.name, str(number).encode())
    assert producer.flush(RETRY_SECONDS) == 0
    options = f"-Djava.security.krb5.conf={kdc.config}"
    done = subprocess.run(
        [sys.executable, str(COPIER)],
        env=environment(few_rows(settings), JDK_JAVA_OPTIONS=options),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = {message.key() for message in read_topic(plain, NEST_CAMERA_STATS.name)}
    assert written == {f'{{"text":"{number}"}}'.encode() for number in range(10)}
    assert done.stdout.splitlines()[-1] == "10 rows read back"


def test_the_java_that_came_with_streamgauge_has_no_kerberos(kerberized):
    with pytest.raises(StreamgaugeError, match=r"jdk\.security\.jgss.*STREAMGAUGE_JAVA_HOME"):
        java_home(replace(kerberized[0], java_home=""))


def test_librdkafka_says_what_it_lacks(kerberized):
    line = one_line_error(streamgauge("status", settings=kerberized[0]))
    assert absent(line, "KAFKA_CLIENT_PROPERTIES=", "No provider for SASL mechanism GSSAPI", "docs/security.md") == []
