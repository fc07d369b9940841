"""Authentication and TLS of all Kafka clients, from one file with Kafka's own property names (KAFKA_CLIENT_PROPERTIES).

librdkafka's clients get the values, under librdkafka's names. Spark's clients get references, which Kafka's config providers resolve inside
the client. A secret is never an option of a query, so it cannot appear in a plan, a log or a checkpoint.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from infrastructure.security.jaas_file import login_module_of
from infrastructure.security.properties_file import PROVIDERS, REFERENCE, PropertiesFile
from infrastructure.security.ticket_cache import check_ticket
from infrastructure.security.tls import Tls

VARIABLE = "KAFKA_CLIENT_PROPERTIES"
_JAAS = "sasl.jaas.config"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
"""SASL mechanism to the login module of Java's clients."""
_BY_TICKET = f"{_LOGIN_MODULES['GSSAPI']} required useTicketCache=true doNotPrompt=true;"
_SECRETS = {_JAAS, "sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.truststore.password"}
_OPEN = {
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.kerberos.service.name",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.endpoint.identification.algorithm",
}
_OURS = {"sasl.username", "sasl.password"}
"""Properties that Kafka's Java clients accept only as part of sasl.jaas.config."""
_ENTRY = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*);\s*", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


@dataclass(frozen=True)
class ClientSecurity:
    """The security settings of Kafka clients, created by `read`. As text it shows the file's path and none of its contents.

    user: the client's identity, for messages. librdkafka: properties of librdkafka's clients. spark: options of Spark's, without secrets.
    """

    file: str = ""
    protocol: str = field(default="PLAINTEXT", repr=False)
    mechanism: str = field(default="", repr=False)
    user: str = field(default="", repr=False)
    tls: Tls = field(default=Tls(), repr=False)
    librdkafka: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    spark: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, path: Path, environment: Mapping[str, str], java_options: str = "") -> Self:
        """Reads the properties file at `path`. environment: resolves references. java_options: Spark's, which may name a JAAS file.

        Raises StreamgaugeError for an unknown property, for one that not all clients support, and when a Kerberos ticket is needed and there
        is no valid one. The message contains no secrets.
        """
        properties = PropertiesFile.read(path.absolute(), environment, VARIABLE)
        properties.check_names(_SECRETS | _OPEN)
        protocol, mechanism = (properties.value("security.protocol") or "PLAINTEXT").upper(), ""
        librdkafka, user, tls, of_jaas_file = {"security.protocol": protocol}, "", Tls(), None
        if protocol.startswith("SASL_"):
            mechanism = _mechanism(properties)
            of_jaas_file = None if {_JAAS, *_OURS} & properties.texts.keys() else login_module_of(java_options)
            sasl = _sasl(properties if of_jaas_file is None else properties.with_value(_JAAS, of_jaas_file), mechanism)
            user = sasl.get("sasl.username") or sasl.get("sasl.kerberos.principal") or ""
            librdkafka |= {"sasl.mechanism": mechanism, **sasl}
        if protocol.endswith("SSL"):
            tls = Tls.of(properties)
            librdkafka |= tls.librdkafka()
            user = user or (tls.own_certificate().subject.rfc4514_string() if tls.keystore else "")
        spark = spark_options(properties, mechanism if of_jaas_file is None else "")
        return cls(str(path), protocol, mechanism, user, tls, tuple(librdkafka.items()), tuple(spark.items()))


def spark_options(properties: PropertiesFile, mechanism: str) -> dict[str, str]:
    """Options of Spark's Kafka source and sink. Secrets are replaced by references to their source, which may be this file.

    mechanism: for which a login module is needed; empty if Java has one by a JAAS file.
    """
    options = {name: _for_java(properties, name) for name in properties.texts if name not in _OURS}
    if mechanism == "GSSAPI":
        options.setdefault(_JAAS, _BY_TICKET)
    elif mechanism and _JAAS not in options:
        user, password = (_for_java(properties, f"sasl.{name}") for name in ("username", "password"))
        options[_JAAS] = f'{_LOGIN_MODULES[mechanism]} required username="{user}" password="{password}";'
    if any(REFERENCE.search(text) for text in options.values()):
        options["config.providers"] = ",".join(PROVIDERS)
        options |= {f"config.providers.{name}.class": of for name, of in PROVIDERS.items()}
    return {f"kafka.{name}": text for name, text in options.items()}


def _for_java(properties: PropertiesFile, name: str) -> str:
    text = properties.texts.get(name, "")
    if name not in _SECRETS:
        return text
    if REFERENCE.search(text):
        _check_for_plain_secrets(properties, name)
        return text
    if re.search("[:}]", str(properties.path)):
        msg = (
            f"Spark's clients take {name} by a reference to this file, which can have no colon or closing brace in its path; move the file"
        )
        raise properties.error(msg)
    return f"${{file:{properties.path}:{name}}}"


def _check_for_plain_secrets(properties: PropertiesFile, name: str) -> None:
    """Raises StreamgaugeError if a text with references also contains a secret. Spark gets such a text unchanged."""
    text = properties.texts[name]
    module = login_module(text) if name == _JAAS else LoginModule("", {"password": text})
    secrets = [] if module is None else [value for option, value in module.options.items() if re.search("pass|secret", option.lower())]
    if module is None or any(REFERENCE.sub("", secret) for secret in secrets):
        msg = f"{name} contains a reference, but its password is not one; make the whole password a reference, or use none"
        raise properties.error(msg)


def _mechanism(properties: PropertiesFile) -> str:
    mechanism = properties.value("sasl.mechanism") or "GSSAPI"
    if mechanism not in _LOGIN_MODULES:
        msg = f"sasl.mechanism is {mechanism}; expected one of {', '.join(_LOGIN_MODULES)}, which all clients support"
        raise properties.error(msg)
    return mechanism


def _sasl(properties: PropertiesFile, mechanism: str) -> dict[str, str]:
    if mechanism == "GSSAPI":
        return _kerberos(properties)
    jaas = properties.value(_JAAS)
    if jaas is None:
        return _user_and_password(properties)
    module, expected = login_module(jaas), _LOGIN_MODULES[mechanism]
    if module is None or not expected.endswith(f".{module.name}") or not {"username", "password"} <= module.options.keys():
        msg = f'{_JAAS} is not what {mechanism} takes; expected {expected} required username="..." password="...";'
        raise properties.error(msg)
    return {"sasl.username": module.options["username"], "sasl.password": module.options["password"]}


def _user_and_password(properties: PropertiesFile) -> dict[str, str]:
    user, password = properties.value("sasl.username"), properties.value("sasl.password")
    if not user or not password:
        msg = f"{_JAAS} is missing; set it, or sasl.username and sasl.password"
        raise properties.error(msg)
    if re.search(r'["\\]', user + password):
        msg = f'sasl.username or sasl.password holds " or \\; write {_JAAS} instead, with a backslash before each of them'
        raise properties.error(msg)
    return {"sasl.username": user, "sasl.password": password}


def _kerberos(properties: PropertiesFile) -> dict[str, str]:
    """The properties for a keytab or, without one, for the ticket that `kinit` has stored."""
    service, module = properties.value("sasl.kerberos.service.name"), login_module(properties.value(_JAAS) or _BY_TICKET)
    by_keytab = module is not None and {"keyTab", "principal"} <= module.options.keys()
    by_ticket = (
        module is not None and module.options.get("useTicketCache") == "true" and not {"keyTab", "ticketCache"} & module.options.keys()
    )
    if not service or module is None or not (by_keytab or by_ticket):
        expected = f'{_LOGIN_MODULES["GSSAPI"]} required useKeyTab=true storeKey=true keyTab="/path" principal="name@REALM";'
        msg = f"GSSAPI requires sasl.kerberos.service.name, and {_JAAS}={expected}, or no {_JAAS} for the ticket of `kinit` (KRB5CCNAME)"
        raise properties.error(msg)
    if by_keytab:
        names = {"sasl.kerberos.principal": module.options["principal"], "sasl.kerberos.keytab": module.options["keyTab"]}
        return {"sasl.kerberos.service.name": service, **names}
    check_ticket(properties.environment)
    # Otherwise librdkafka runs kinit with a keytab of its own choice.
    return {"sasl.kerberos.service.name": service, "sasl.kerberos.min.time.before.relogin": "0"}


class LoginModule(NamedTuple):
    """A login module: its simple class name, such as ScramLoginModule, and its options."""

    name: str
    options: Mapping[str, str]


def login_module(text: str) -> LoginModule | None:
    """The login module in `text`. None unless `text` has the form `class required name="value" ...;` with a single module."""
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        return None
    options, rest = {}, entry[2]
    while rest.strip():
        option = _OPTION.match(rest)
        if option is None:
            return None
        quoted = option[2] if option[2] is not None else option[3]
        options[option[1]] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else option[4]
        rest = rest[option.end() :]
    return LoginModule(entry[1].rpartition(".")[2], options)
