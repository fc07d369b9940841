"""Why a Kafka that takes connections does not let this client in: what was found, what was expected, what to do."""

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from streamgauge.kafka_cluster import KafkaCluster
from streamgauge.security.client_security import VARIABLE
from streamgauge.security.tls import PEM, Tls

if TYPE_CHECKING:
    from cryptography import x509

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 4.0
SAME_ANSWERS = 3
"""So often a broker must hang up to be taken for one of another protocol: one that is just being stopped does so too."""
SECONDS_BETWEEN = 0.5
ALERT_SECONDS = 1.0
"""How long a server may take to say that it does not accept the client's certificate: it says so after the handshake, or not at all."""
_EXPIRED, _OTHER_HOST = 10, {62, 64}
"""OpenSSL's numbers of what is wrong with a certificate; the second are for a name and for an address."""


def refusal(kafka: KafkaCluster) -> str | None:
    """Why `kafka` refuses this client; None when nothing listens there, or it lets the client in after all."""
    address = next((address for address in addresses(kafka) if _is_taken(address)), None)
    if address is None:
        return None
    if own := _own_expired(kafka.security.tls):
        return own
    heard = _heard(kafka)
    if not heard:
        return None
    about_user = next(filter(None, (_about_user(kafka, error) for error in heard)), None)
    return about_user or _about_tls(kafka, address) or _about_hanging_up(kafka, address, heard)


def addresses(kafka: KafkaCluster) -> list[str]:
    """Where it is asked first, each as host:port."""
    return [address.strip().rpartition("://")[2] for address in str(kafka).split(",") if address.strip()]


def _is_taken(address: str) -> bool:
    try:
        with _connected(address):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS)


def _own_expired(tls: Tls) -> str | None:
    if not tls.keystore:
        return None
    try:
        own = tls.own_certificate()
    except (OSError, ValueError):  # it is being replaced
        return None
    if own.expires > datetime.now(UTC):
        return None
    return f"this client's own certificate ({own.subject}, in {tls.keystore}) expired on {own.expires:%Y-%m-%d}; renew it"


def _about_tls(kafka: KafkaCluster, address: str) -> str | None:
    """What is wrong with TLS on the way to `address`. Asked directly, OpenSSL says what it tells librdkafka only in part."""
    if not kafka.security.protocol.endswith("SSL"):
        return _about_protocol(kafka, "what listens there speaks TLS") if _certificate(address) else None
    for _ in range(SAME_ANSWERS):
        try:
            _shake_hands(kafka.security.tls, address)
        except ssl.SSLCertVerificationError as error:
            return _about_certificate(kafka.security.tls, address, error)
        except ssl.SSLEOFError:
            # A listener without TLS hangs up; so does, once, a broker that is stopped.
            time.sleep(SECONDS_BETWEEN)
        except ssl.SSLError as error:
            return _about_handshake(kafka, error)
        except OSError:
            return None
        else:
            return None
    return _about_protocol(kafka, "what listens there does not speak TLS")


def _shake_hands(tls: Tls, address: str) -> None:
    host = address.rpartition(":")[0].strip("[]")
    with _connected(address) as plain, tls.context().wrap_socket(plain, server_hostname=host) as secured:
        secured.settimeout(ALERT_SECONDS)
        # A keystore of PKCS12 cannot be shown here: what the server says to a client without one is no matter then.
        if tls.keystore_type == PEM:
            with contextlib.suppress(TimeoutError):
                secured.recv(1)


def _about_certificate(tls: Tls, address: str, error: ssl.SSLCertVerificationError) -> str:
    found = _shown(address)
    if error.verify_code == _EXPIRED:
        return f"the certificate that {address} shows ({found}) has expired; renew it at the broker"
    if error.verify_code in _OTHER_HOST:
        return (
            f"the certificate that {address} shows ({found}) is for another host; name the broker as its certificate does, "
            "in KAFKA_BOOTSTRAP_SERVERS and advertised.listeners, or give it a certificate for that name"
        )
    trusted = (
        f"{tls.truststore} (ssl.truststore.location)" if tls.truststore else "what this system trusts (no ssl.truststore.location is set)"
    )
    return f"the certificate that {address} shows ({found}) is of no authority in {trusted}: {error.verify_message}; put its authority's certificate there"


def _about_handshake(kafka: KafkaCluster, error: ssl.SSLError) -> str:
    if "alert" not in str(error).lower():
        return _about_protocol(kafka, f"what listens there does not speak TLS as it should ({error.reason})")
    alert = re.sub(r"^.*ALERT_", "", error.reason or "handshake failure").lower().replace("_", " ")
    who = f"this client's certificate ({kafka.security.user})" if kafka.security.tls.keystore else "a client without a certificate"
    return (
        f"the broker does not take {who}: {alert}; name one in ssl.keystore.location that an authority which the broker trusts has signed"
    )


def _about_protocol(kafka: KafkaCluster, found: str) -> str:
    file = kafka.security.file
    chosen = (
        f"security.protocol={kafka.security.protocol} in {file}"
        if file
        else f"security.protocol=PLAINTEXT, as no {VARIABLE} says otherwise"
    )
    return f"{found}, and this client has {chosen}; choose the protocol of that listener, or another port"


def _shown(address: str) -> str:
    """Whom the certificate that a server shows is for, who has issued it, and until when it is valid."""
    shown = _certificate(address)
    if shown is None:
        return "unreadable"
    names = ", ".join(_hosts(shown)) or "no host"
    return f"for {names}; issued by {shown.issuer.rfc4514_string()}, valid until {shown.not_valid_after_utc:%Y-%m-%d}"


def _certificate(address: str) -> "x509.Certificate | None":
    """What a server shows, unchecked; None if it does not speak TLS."""
    from cryptography import x509

    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    try:
        with _connected(address) as plain, unchecked.wrap_socket(plain) as secured:
            return x509.load_der_x509_certificate(secured.getpeercert(binary_form=True) or b"")
    except (OSError, ValueError):
        return None


def _hosts(certificate: "x509.Certificate") -> Iterator[str]:
    from cryptography import x509

    with contextlib.suppress(x509.ExtensionNotFound):
        for name in certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value:
            yield str(name.value)


def _heard(kafka: KafkaCluster) -> list[KafkaError]:
    """What Kafka's own client says of its connections until it says why, at most for ANSWER_SECONDS; nothing when it is let in."""
    heard: list[KafkaError] = []
    # Its own limits hold: a broker that is slow to shake hands is no broker that hangs up.
    asking = kafka.admin({"error_cb": heard.append, "reconnect.backoff.max.ms": 500})
    deadline = time.monotonic() + ANSWER_SECONDS
    while not any(_tells_why(error) for error in heard) and time.monotonic() < deadline:
        try:
            asking.list_topics(timeout=0.5)
        except KafkaException:
            asking.poll(0)
        else:
            return []
    return heard


def _tells_why(error: KafkaError) -> bool:
    return error.code() in {KafkaError._AUTHENTICATION, KafkaError._SSL} or " alert " in error.str() or "listener?" in error.str()


def _about_user(kafka: KafkaCluster, error: KafkaError) -> str | None:
    if error.code() != KafkaError._AUTHENTICATION:
        return None
    # The client names its connection before, and how long it took behind.
    text = re.sub(r"^\S+://\S+: |\s*\(after \d+ms in state [^)]*\)", "", error.str()).rstrip(".")
    security = kafka.security
    return (
        f"user {security.user}, by {security.mechanism}: {text}; correct user and password in {security.file}, or have the broker know them"
    )


def _about_hanging_up(kafka: KafkaCluster, address: str, heard: list[KafkaError]) -> str | None:
    """That the server takes every connection and ends it, as it does with a client that uses SASL where there is none, or the reverse.

    None for a client without properties: what hangs up on that may be anything.
    """
    is_ended = any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in heard)
    is_refused = any("Connect to" in error.str() for error in heard)
    # A broker that is stopped and started refuses connections in between; this one has not.
    if kafka.security.file and is_ended and not is_refused and _is_taken(address):
        return _about_protocol(kafka, "what listens there hangs up")
    return None
