"""A broker with a listener for each way to ask who is there, and clients that come with what they are given."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from certificates import Authority
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from rights import Right
from running import SHORT_LIVED, start_server

from contract.create_topics import create_topics
from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings
from streamgauge.platform.kafka import EmbeddedKafka

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
HOST = "127.0.0.1"
REAUTHENTICATION_MS = 5000
LISTENERS = {"SCRAM": "SASL_SSL", "MTLS": "SSL", "ELSEWHERE": "SSL", "EXPIRED": "SSL"}
"""By name, the protocol: for passwords, for certificates, and two whose own certificate is for another host, or no longer valid."""


class SecuredKafka(EmbeddedKafka):
    """The embedded broker's program, with the listeners above. Who comes by the one without security is its administrator."""

    def __init__(self, settings: Settings, ports: dict[str, int], more: dict[str, str]) -> None:
        super().__init__(settings)
        self._listeners, self._more = ports, more

    def _server_properties(self) -> dict[str, str | int]:
        own = super()._server_properties()
        addresses = ",".join(f"{name}://{HOST}:{port}" for name, port in self._listeners.items())
        protocols = ",".join(f"{name}:{LISTENERS[name]}" for name in self._listeners)
        return own | {
            "listeners": f"{own['listeners']},{addresses}",
            "advertised.listeners": f"{own['advertised.listeners']},{addresses}",
            "listener.security.protocol.map": f"{own['listener.security.protocol.map']},{protocols}",
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            **self._more,
        }


@dataclass
class Secured:
    """The broker that runs, and what it takes to come to it. secrets: all that must never be seen anywhere."""

    admin: Settings
    ports: dict[str, int]
    folder: Path
    authority: Authority
    secrets: list[str] = field(default_factory=list)

    def address(self, listener: str) -> str:
        """Where a listener is."""
        return f"{HOST}:{self.ports[listener]}"

    def come(self, listener: str, properties: str, home: Path | None = None) -> Settings:
        """The settings of a program that comes by `listener` with these client properties."""
        path = self.folder / f"{uuid.uuid4()}.properties"
        path.write_text(properties)
        return replace(
            self.admin,
            home=home or self.folder / f"home-{uuid.uuid4()}",
            kafka_bootstrap_servers=self.address(listener),
            kafka_client_properties=path,
        )

    def secret(self, what: str) -> str:
        """A new secret."""
        self.secrets.append(f"{what}-{uuid.uuid4().hex}")
        return self.secrets[-1]

    def trusting(self, authority: Authority | None = None) -> str:
        """Properties of a client that trusts an authority: the broker's own, if no other is given."""
        path = (authority or self.authority).pem(self.folder / f"{uuid.uuid4()}-ca.pem")
        return f"ssl.truststore.type=PEM\nssl.truststore.location={path}\n"

    def user(self, name: str) -> str:
        """Has the broker know a user by a new password; returns the properties of a client that is it."""
        password = self.secret("password")
        told = UserScramCredentialUpsertion(name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode())
        admin = self.admin.kafka.admin()
        for done in admin.alter_user_scram_credentials([told]).values():
            done.result()
        return self.as_user(name, password)

    def as_user(self, name: str, password: str) -> str:
        """Properties of a client that says it is `name`."""
        jaas = f'{SCRAM_MODULE} required username="{name}" password="{password}";'
        return f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={jaas}\n{self.trusting()}"

    def as_certified(
        self, name: str, authority: Authority | None = None, *, expired: bool = False, password: str = "", written: str = ""
    ) -> str:
        """Properties of a client that shows a certificate of `name`. password: of its key; it is `written` so, if not as it is."""
        own = (authority or self.authority).issue(name, expired=expired)
        path = own.pem(self.folder / f"{uuid.uuid4()}.pem", password or None)
        key = f"ssl.key.password={written or password}\n" if password else ""
        return f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={path}\n{key}{self.trusting()}"

    def grant(self, name: str, rights: list[Right]) -> None:
        """Gives the principal these rights, and waits until the broker has them."""
        bindings = [
            AclBinding(
                ResourceType.TOPIC, right.name, ResourcePatternType.LITERAL, f"User:{name}", "*",
                AclOperation[right.operation], AclPermissionType.ALLOW,
            )
            for right in rights
        ]  # fmt: skip
        admin = self.admin.kafka.admin()
        for done in (admin.create_acls(bindings) if bindings else {}).values():
            done.result()


def listeners(secured: Secured) -> dict[str, str]:
    """The properties of the broker's listeners."""
    authority, folder = secured.authority, secured.folder
    shown = {
        "scram": authority.issue("broker", (HOST,)),
        "mtls": authority.issue("broker", (HOST,)),
        "elsewhere": authority.issue("broker", ("broker.example.org", "10.9.8.7")),
        "expired": authority.issue("broker", (HOST,), expired=True),
    }
    properties = {}
    for name, certificate in shown.items():
        prefix = f"listener.name.{name}.ssl"
        properties |= {f"{prefix}.keystore.type": "PEM", f"{prefix}.keystore.location": str(certificate.pem(folder / f"{name}.pem"))}
    return properties | {
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "listener.name.scram.scram-sha-512.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.truststore.type": "PEM",
        "listener.name.mtls.ssl.truststore.location": str(authority.pem(folder / "ca.pem")),
        "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


@contextmanager
def running_secured(folder: Path) -> Iterator[Secured]:
    """The broker, with every topic; its files are in `folder`."""
    folder.mkdir(exist_ok=True)
    first, dashboard, registry, *others = free_ports(3 + len(LISTENERS))
    ports = dict(zip(LISTENERS, others, strict=True))
    cache = Settings.from_environment().cache
    no_registry = f"http://127.0.0.1:{registry}"
    settings = Settings(
        home=folder / "home",
        kafka_port=first,
        dashboard_port=dashboard,
        registry_port=registry,
        cache=cache,
        schema_registry_url=no_registry,
        driver_java_options=SHORT_LIVED,
    )
    found = Secured(settings, ports, folder, Authority("tests"))
    broker = SecuredKafka(settings, ports, listeners(found))
    start_server(broker)
    try:
        create_topics(settings.kafka)
        yield found
    finally:
        broker.stop()
