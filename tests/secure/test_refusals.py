"""A broker that does not let a client in: one line that says what was found, what was expected, and what to do; soon, and no traceback."""

import re
import time
from dataclasses import replace

import pytest
from certificates import Authority
from running import streamgauge_here

MOST_SECONDS = 30
COMMANDS = {
    "status": ("status",),
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


CASES = {
    wrong_password: "user alice, by SCRAM-SHA-512: SASL authentication error: Authentication failed .*; correct user and password in ",
    unknown_user: "user nobody, by SCRAM-SHA-512: SASL authentication error: Authentication failed .*; correct user and password in ",
    another_mechanism: "user bob, by SCRAM-SHA-256: .*supported mechanisms: SCRAM-SHA-512; correct user",
    unknown_authority: r"the certificate that \S+ shows \(for 127.0.0.1; issued by CN=tests, valid until \S+\) is of no authority in \S+-ca.pem ",
    wrong_host: r"shows \(for broker.example.org, 10.9.8.7; issued by CN=tests, valid until \S+\) is for another host; name the broker as",
    expired_broker: r"shows \(for 127.0.0.1; issued by CN=tests, valid until \S+\) has expired; renew it at the broker",
    expired_client: r"this client's own certificate \(CN=old, in \S+.pem\) expired on \d{4}-\d\d-\d\d; renew it",
    no_certificate: r"the broker does not take a client without a certificate: .*; name one in ssl.keystore.location",
    certificate_of_another_authority: r"the broker does not take this client's certificate \(CN=stranger\): .*; name one in ssl.keystore.location",
    no_sasl_where_there_is: "what listens there hangs up, and this client has security.protocol=SSL in .*; choose the protocol of that",
    no_tls_where_there_is: "what listens there speaks TLS, and this client has security.protocol=SASL_PLAINTEXT in .*; choose the protocol of that",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_one_clear_line(secured, case, command):
    listener, properties = case(secured)
    settings, started = secured.come(listener, properties), time.monotonic()
    done = streamgauge_here(*COMMANDS[command], settings=settings)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: Kafka at {secured.address(listener)} does not let this client in: ")
    assert re.search(CASES[case], line), line
    assert time.monotonic() - started < MOST_SECONDS
    assert not [secret for secret in secured.secrets if secret in done.stdout + done.stderr]


def test_tls_where_there_is_none(secured):
    properties = f"security.protocol=SSL\n{secured.trusting()}"
    settings = secured.come("SCRAM", properties)
    plain = replace(settings, kafka_bootstrap_servers=secured.admin.bootstrap_servers)
    done = streamgauge_here("status", settings=plain)
    assert done.returncode == 2
    assert "what listens there does not speak TLS, and this client has security.protocol=SSL in " in done.stderr


def test_a_client_without_properties_is_told_that_they_are_missing(secured):
    settings = replace(secured.admin, kafka_bootstrap_servers=secured.address("SCRAM"))
    done = streamgauge_here("status", settings=settings)
    assert done.returncode == 2
    assert (
        "what listens there speaks TLS, and this client has security.protocol=PLAINTEXT, as no KAFKA_CLIENT_PROPERTIES says otherwise"
        in done.stderr
    )


def test_the_doctor_says_the_same(secured):
    listener, properties = wrong_password(secured)
    done = streamgauge_here("doctor", settings=secured.come(listener, properties))
    assert done.returncode == 1
    assert "does not let this client in: user alice, by SCRAM-SHA-512" in done.stdout.replace("\n", " ")
