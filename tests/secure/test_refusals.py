"""A broker that does not let a client in: one line that says what was found, what was expected, and what to do; soon, and no traceback."""

import re
import time
from dataclasses import replace

import pytest
from certificates import Authority
from running import streamgauge_here

MOST_SECONDS = 30
COMMANDS = {
    "produce": ("produce", "nest", "--limit", "1"),
    "run": ("run", "nest-camera-stats", "--once"),
    "up": ("up",),
}


def wrong_password(secured):
    secured.user("alice")
    return "SCRAM", secured.as_user("alice", secured.secret("guessed"))


def unknown_user(secured):
    return "SCRAM", secured.as_user("nobody", secured.secret("guessed"))


def another_mechanism(secured):
    return "SCRAM", secured.user("bob").replace("SCRAM-SHA-512", "SCRAM-SHA-256")


def unknown_authority(secured):
    return "SCRAM", secured.user("carol") + secured.trusting(Authority("others"))


def wrong_host(secured):
    return "ELSEWHERE", f"security.protocol=SSL\n{secured.trusting()}"


def expired_broker(secured):
    return "EXPIRED", f"security.protocol=SSL\n{secured.trusting()}"


def expired_client(secured):
    return "MTLS", secured.as_certified("old", expired=True)


def no_certificate(secured):
    return "MTLS", f"security.protocol=SSL\n{secured.trusting()}"


def certificate_of_another_authority(secured):
    return "MTLS", secured.as_certified("stranger", Authority("others"))


def no_tls_where_there_is(secured):
    return "SCRAM", secured.user("dave").replace("SASL_SSL", "SASL_PLAINTEXT")


def no_sasl_where_there_is(secured):
    return "SCRAM", f"security.protocol=SSL\n{secured.trusting()}"


UNTRUSTED = "certificate verify failed: broker certificate could not be verified"
CASES = {
    wrong_password: "does not let alice in: SASL authentication error: Authentication failed .* with SASL mechanism SCRAM-SHA-512",
    unknown_user: "does not let nobody in: SASL authentication error: Authentication failed",
    another_mechanism: "does not let bob in: SASL SCRAM-SHA-256 mechanism handshake failed: .*supported mechanisms: SCRAM-SHA-512",
    unknown_authority: f"does not let carol in: SSL handshake failed: .*{UNTRUSTED}",
    wrong_host: UNTRUSTED,
    expired_broker: UNTRUSTED,
    expired_client: "does not let CN=old in: .* alert certificate unknown",
    no_certificate: "does not let this client in: .* alert bad certificate",
    certificate_of_another_authority: "does not let CN=stranger in: .* alert bad certificate",
    no_sasl_where_there_is: "closes every connection, as a listener for another security.protocol than SSL does",
    no_tls_where_there_is: "closes every connection, as a listener for another security.protocol than SASL_PLAINTEXT does",
}
FOUND_BY_DOCTOR = {
    wrong_password: "does not let in alice, by SCRAM-SHA-512: SASL authentication error: .*speaks TLS, with a certificate that this client trusts",
    unknown_authority: "with a certificate that this client does not trust: self-signed certificate in certificate chain",
    wrong_host: "with a certificate that this client does not trust: IP address mismatch, certificate is not valid for '127.0.0.1'",
    expired_broker: "with a certificate that this client does not trust: certificate has expired",
    expired_client: r"this client's own certificate \(CN=old, in \S+.pem\) expired on \d{4}-\d\d-\d\d",
    no_tls_where_there_is: "closes every connection, .*speaks TLS",
}


def refused(secured, case, *command):
    listener, properties = case(secured)
    settings, started = secured.come(listener, properties), time.monotonic()
    done = streamgauge_here(*command, settings=settings)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: Kafka at {secured.address(listener)} does not let ")
    assert line.endswith("; `streamgauge doctor` says more")
    assert re.search(CASES[case], line), line
    assert time.monotonic() - started < MOST_SECONDS
    assert not [secret for secret in secured.secrets if secret in done.stdout + done.stderr]


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_one_clear_line(secured, case):
    refused(secured, case, "status")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", [wrong_password, no_tls_where_there_is])
def test_every_program_says_it(secured, case, command):
    refused(secured, case, *COMMANDS[command])


def test_tls_where_there_is_none(secured):
    properties = f"security.protocol=SSL\n{secured.trusting()}"
    settings = secured.come("SCRAM", properties)
    plain = replace(settings, kafka_bootstrap_servers=secured.admin.bootstrap_servers)
    done = streamgauge_here("status", settings=plain)
    assert done.returncode == 2
    assert "connecting to a PLAINTEXT broker listener?" in done.stderr


def test_a_client_without_properties_is_told_that_the_listener_has_another_protocol(secured):
    settings = replace(secured.admin, kafka_bootstrap_servers=secured.address("SCRAM"))
    done = streamgauge_here("status", settings=settings)
    assert done.returncode == 2
    assert "closes every connection, as a listener for another security.protocol than PLAINTEXT does" in done.stderr


@pytest.mark.parametrize("case", FOUND_BY_DOCTOR)
def test_the_doctor_says_more(secured, case):
    done = streamgauge_here("doctor", settings=secured.come(*case(secured)))
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert re.search(FOUND_BY_DOCTOR[case], said), said
