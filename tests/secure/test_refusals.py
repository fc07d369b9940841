"""A broker that does not let a client in: one line that says what was found, what was expected, and what to do; and no traceback."""

from dataclasses import replace

import pytest
from certificates import Authority
from messages import absent
from running import one_line_error, streamgauge

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
    wrong_password: ("alice", "Authentication failed", "SCRAM-SHA-512"),
    unknown_user: ("nobody", "Authentication failed"),
    another_mechanism: ("bob", "SCRAM-SHA-256", "supported mechanisms: SCRAM-SHA-512"),
    unknown_authority: ("carol", UNTRUSTED),
    wrong_host: (UNTRUSTED,),
    expired_broker: (UNTRUSTED,),
    expired_client: ("CN=old", "alert certificate unknown"),
    no_certificate: ("alert bad certificate",),
    certificate_of_another_authority: ("CN=stranger", "alert bad certificate"),
    no_sasl_where_there_is: ("security.protocol", "SSL"),
    no_tls_where_there_is: ("security.protocol", "SASL_PLAINTEXT"),
}
FOUND_BY_DOCTOR = {
    wrong_password: ("alice", "SCRAM-SHA-512", "SASL authentication error", "speaks TLS"),
    unknown_authority: ("self-signed certificate in certificate chain",),
    wrong_host: ("certificate is not valid for '127.0.0.1'",),
    expired_broker: ("certificate has expired",),
    expired_client: ("CN=old", ".pem", " expired on 20"),
    no_tls_where_there_is: ("closes every connection", "speaks TLS"),
}


def refused(secured, case, *command):
    listener, properties = case(secured)
    done = streamgauge(*command, settings=secured.come(listener, properties))
    line = one_line_error(done)
    assert absent(line, secured.address(listener), "`streamgauge doctor`", *CASES[case]) == [], line
    assert not [secret for secret in secured.secrets if secret in done.stdout + done.stderr]


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_one_clear_line(secured, case):
    refused(secured, case, "status")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_program_says_it(secured, command):
    refused(secured, wrong_password, *COMMANDS[command])


def test_tls_where_there_is_none(secured):
    properties = f"security.protocol=SSL\n{secured.trusting()}"
    plain = replace(secured.come("SCRAM", properties), kafka_bootstrap_servers=secured.admin.bootstrap_servers)
    assert "PLAINTEXT broker listener" in one_line_error(streamgauge("status", settings=plain))


def test_a_client_without_properties_is_told_that_the_listener_has_another_protocol(secured):
    settings = replace(secured.admin, kafka_bootstrap_servers=secured.address("SCRAM"))
    assert absent(one_line_error(streamgauge("status", settings=settings), code=3), "security.protocol", "PLAINTEXT") == []


@pytest.mark.parametrize("case", FOUND_BY_DOCTOR)
def test_the_doctor_says_more(secured, case):
    done = streamgauge("doctor", settings=secured.come(*case(secured)))
    assert done.returncode == 1
    assert absent(" ".join(done.stdout.split()), *FOUND_BY_DOCTOR[case]) == []
