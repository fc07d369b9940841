"""Checks the broker, its advertised addresses, its topics, and the schema registry."""

import socket
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from contract.create_topics import Deviation, deviations
from contract.domains import TOPICS
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import is_forbidden, is_hidden, reason, refusal
from infrastructure.registry.client import RegistryUnavailable, SchemaRegistry
from infrastructure.security.client_security import VARIABLE
from infrastructure.settings import Settings
from streamgauge.operations.doctor.findings import Finding, Level
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.registry import EmbeddedRegistry
from streamgauge.platform.server import EmbeddedServer

CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 2.0
_RIGHTS = "grant the rights that docs/security.md lists"


def broker(settings: Settings) -> list[Finding]:
    """Checks that Kafka answers at the bootstrap address and at the addresses that it advertises to clients."""
    reasons = {address: unreachable(address) for address in settings.kafka.addresses}
    if all(reasons.values()):
        return [_unavailable(settings, ", ".join(f"{address}: {reason}" for address, reason in reasons.items()))]
    try:
        advertised = _advertised(settings.kafka)
    except KafkaException as error:
        if why := refusal(settings.kafka):
            return [_refused(settings.kafka, why, next(address for address, reason in reasons.items() if reason is None))]
        return [_unavailable(settings, f"what listens at {settings.kafka} does not answer as Kafka: {error.args[0].str()}")]
    dead = {address: reason for address in advertised if (reason := unreachable(address) or _unanswered(settings.kafka, address))}
    if dead:
        shown = ", ".join(f"{address} ({reason})" for address, reason in dead.items())
        message = f"a broker answers at {settings.kafka}, and tells clients to connect to {shown}, which they cannot"
        advice = "set the broker's advertised.listeners to an address that this machine can reach, or make that one reachable"
        return [Finding("kafka", "problem", message, advice)]
    return [Finding("kafka", "ok", f"answers at {settings.kafka}, and at the address that it advertises, {', '.join(advertised)}")]


def topics(settings: Settings) -> list[Finding]:
    """Checks that all topics exist with the partitions and settings of topics.py."""
    if all(unreachable(address) for address in settings.kafka.addresses):
        return [Finding("topics", "note", "not checked: Kafka does not answer")]
    admin = _admin(settings.kafka)
    try:
        partitions = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=ANSWER_SECONDS).topics.items()}
        present = [topic for topic in TOPICS if topic.name in partitions]
        differing = deviations(admin, present, partitions, ANSWER_SECONDS)
    except (KafkaException, TimeoutError) as error:
        is_a_right = isinstance(error, KafkaException) and is_forbidden(error.args[0])
        advice = _RIGHTS if is_a_right else "see the finding about kafka"
        return [Finding("topics", "warning", f"could not be checked: {reason(error, ANSWER_SECONDS)}", advice)]
    unseen = [topic.name for topic in TOPICS if topic.name not in partitions]
    hidden = [name for name in unseen if is_hidden(settings.kafka, name, ANSWER_SECONDS)]
    missing = [name for name in unseen if name not in hidden]
    findings = [_deviating(deviation, settings) for deviation in differing]
    for names, status, advice in ((missing, "missing", "`streamgauge up` creates them"), (hidden, "hidden from this client", _RIGHTS)):
        if names:
            findings.append(Finding("topics", "warning", f"{len(names)} of {len(TOPICS)} are {status}: {', '.join(names)}", advice))
    return findings or [Finding("topics", "ok", f"all {len(TOPICS)}, with the expected partitions and settings")]


def registry(settings: Settings) -> list[Finding]:
    """Checks that a Confluent-compatible registry answers. Reports its subjects and its compatibility rule.

    Raises StreamgaugeError when a registry of the user's own does not answer, and when what answers is not a registry.
    """
    asked = SchemaRegistry(settings.registry)
    try:
        subjects, rule = asked.subjects(), asked.compatibility
    except RegistryUnavailable:
        if settings.schema_registry_url:
            raise
        return [_embedded("schema registry", EmbeddedRegistry(settings), "no answer")]
    shown = f"answers at {asked.url}: {len(subjects)} subjects, compatibility {rule or 'unknown'}"
    if rule == "NONE":
        advice = "choose BACKWARD, or a new schema may be unable to read old records"
        return [Finding("schema registry", "warning", shown, advice)]
    return [Finding("schema registry", "ok", shown)]


def unreachable(address: str) -> str | None:
    """Why `address` (host:port) accepts no connection. None if it does."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port  # raises ValueError above 65535, which the C library takes modulo 65536
    except ValueError:
        host = port = None
    if not host or not port:
        return f"{address} is no address, host:port expected"
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            return None
    except socket.gaierror:
        return f"the name {host} is not known here"
    except TimeoutError:
        return f"no connection within {CONNECT_SECONDS:g} s"
    except OSError as error:
        return error.strerror or str(error)


def _admin(kafka: KafkaCluster) -> AdminClient:
    return kafka.admin({"socket.connection.setup.timeout.ms": 2000})


def _advertised(kafka: KafkaCluster) -> list[str]:
    brokers = _admin(kafka).list_topics(timeout=ANSWER_SECONDS).brokers.values()
    return sorted(f"{broker.host}:{broker.port}" for broker in brokers)


def _unanswered(kafka: KafkaCluster, address: str) -> str | None:
    try:
        _advertised(replace(kafka, bootstrap_servers=address))
    except KafkaException as error:
        return f"what listens there does not answer as Kafka, {error.args[0].str()}"
    return None


def _unavailable(settings: Settings, problem: str) -> Finding:
    if settings.kafka_bootstrap_servers:
        return Finding("kafka", "problem", f"no broker answers: {problem}", "start it, or correct KAFKA_BOOTSTRAP_SERVERS")
    return _embedded("kafka", EmbeddedKafka(settings), problem)


def _embedded(check: str, server: EmbeddedServer, problem: str) -> Finding:
    """Why the embedded server does not answer."""
    if (process := server.process) is None:
        message = f"the embedded {server.name} does not run ({server.address})"
        return Finding(check, "note", message, "`streamgauge up` or `streamgauge demo` starts it")
    message = f"the embedded {server.name} runs (pid {process.pid}) and does not answer at {server.address}: {problem}"
    advice = f"wait a moment if it has just been started; else see {server.log}, and restart it, with its data: `streamgauge down`, `streamgauge up`"
    return Finding(check, "problem", message, advice)


def _refused(kafka: KafkaCluster, why: str, address: str) -> Finding:
    """The error that librdkafka reports, and the details that it omits."""
    security = kafka.security
    user = f"{security.user}, by {security.mechanism or security.protocol}" if security.user else f"this client, by {security.protocol}"
    message = f"the broker at {kafka} does not let {user} in: {why}; {_tls_at(address, kafka)}"
    if security.tls.keystore and (certificate := security.tls.own_certificate()).not_valid_after_utc < datetime.now(UTC):
        description = f"{certificate.subject.rfc4514_string()}, in {security.tls.keystore}"
        message += f"; this client's own certificate ({description}) expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    return Finding("kafka", "problem", message, f"correct {security.file or VARIABLE}, or what the broker knows of this client")


def _tls_at(address: str, kafka: KafkaCluster) -> str:
    """The result of a TLS handshake in OpenSSL's words, of which librdkafka reports only a part."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        context = kafka.security.tls.context()
        with socket.create_connection((host, int(port)), CONNECT_SECONDS) as plain, context.wrap_socket(plain, server_hostname=host):
            return f"{address} speaks TLS, with a certificate that this client trusts"
    except ssl.SSLCertVerificationError as error:
        return f"{address} speaks TLS, with a certificate that this client does not trust: {error.verify_message.rstrip('.')}"
    except OSError as error:
        return f"{address} does not speak TLS ({getattr(error, 'reason', None) or error.strerror or type(error).__name__})"


def _deviating(of: Deviation, settings: Settings) -> Finding:
    level: Level = "warning"
    file, name = settings.kafka.security.file, of.topic.name
    tool = f"--bootstrap-server {settings.kafka}{f' --command-config {file}' if file else ''} --alter"
    if of.setting != "partitions":
        value = f"[{of.expected}]" if "," in of.expected else of.expected
        advice = f"kafka-configs.sh {tool} --entity-type topics --entity-name {name} --add-config '{of.setting}={value}'"
        if of.setting == "cleanup.policy":
            level, advice = "problem", f"rows are lost as it is: {advice}" if of.topic.is_compacted else advice
    elif int(of.found or 0) > int(of.expected):
        level, advice = "note", "that is fine; Kafka cannot remove partitions, so only a new topic can have fewer"
    else:
        advice = f"add some: kafka-topics.sh {tool} --topic {name} --partitions {of.expected}"
    return Finding("topics", level, f"{name} has {of.setting}={of.found}, expected {of.expected}", advice)
