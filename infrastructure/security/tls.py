"""TLS settings from Kafka's ssl.* properties: trusted authorities and the client's own certificate."""

import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from infrastructure.security.properties_file import PropertiesFile

if TYPE_CHECKING:
    from cryptography import x509

PEM, PKCS12 = "PEM", "PKCS12"


@dataclass(frozen=True)
class Tls:
    """TLS settings of a client, created by `of`.

    trusted: certificates of the authorities as PEM; None: the system's. keystore: the file with the client's certificate and key, of type
    `keystore_type`; empty: none. checks_host_name: whether a server's certificate must match its host name.
    """

    truststore: str = ""
    trusted: str | None = field(default=None, repr=False)
    keystore: str = ""
    keystore_type: str = PEM
    password: str | None = field(default=None, repr=False)
    checks_host_name: bool = True

    @classmethod
    def of(cls, properties: PropertiesFile) -> Self:
        """Reads the ssl.* properties. Raises StreamgaugeError for a store that cannot be read, or that not all clients support."""
        truststore, keystore = properties.value("ssl.truststore.location") or "", properties.value("ssl.keystore.location") or ""
        trusted = _trusted(properties, truststore) if truststore else None
        keystore_type = _type(properties, "keystore", keystore) if keystore else PEM
        password = properties.value("ssl.key.password" if keystore_type == PEM else "ssl.keystore.password")
        algorithm = properties.value("ssl.endpoint.identification.algorithm")
        checks_host_name = algorithm is None or algorithm.lower() == "https"
        tls = cls(truststore, trusted, keystore, keystore_type, password, checks_host_name)
        if keystore:
            tls._check_keystore(properties)
        return tls

    def librdkafka(self) -> dict[str, str]:
        """The settings as librdkafka properties."""
        properties = {"ssl.endpoint.identification.algorithm": "https" if self.checks_host_name else "none"}
        if self.trusted is not None:
            properties["ssl.ca.pem"] = self.trusted
        if self.keystore and self.keystore_type == PEM:
            properties |= {"ssl.certificate.location": self.keystore, "ssl.key.location": self.keystore}
            properties |= {"ssl.key.password": self.password} if self.password else {}
        elif self.keystore:
            properties |= {"ssl.keystore.location": self.keystore, "ssl.keystore.password": self.password or ""}
        return properties

    def context(self) -> ssl.SSLContext:
        """The settings for Python's own clients. These support only PEM keystores; any other keystore is left out.

        Raises ssl.SSLError or OSError when the client's key does not match its certificate, or its password is wrong.
        """
        context = ssl.create_default_context(cadata=self.trusted)
        context.check_hostname = self.checks_host_name
        if self.keystore and self.keystore_type == PEM:
            # Without a password, OpenSSL would prompt on the terminal.
            context.load_cert_chain(self.keystore, password=self.password or "")
        return context

    def own_certificate(self) -> "x509.Certificate":
        """The client's own certificate. Raises ValueError when the keystore holds none, or its password is wrong."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import pkcs12

        content = Path(self.keystore).read_bytes()
        if self.keystore_type == PEM:
            return x509.load_pem_x509_certificates(content)[0]
        store = pkcs12.load_pkcs12(content, (self.password or "").encode())
        if store.cert is None:
            msg = "no certificate"
            raise ValueError(msg)
        return store.cert.certificate

    def _check_keystore(self, properties: PropertiesFile) -> None:
        try:
            self.own_certificate()
            self.context()
        except (ValueError, OSError) as error:  # SSLError is an OSError
            password = "ssl.key.password" if self.keystore_type == PEM else "ssl.keystore.password"
            msg = f"ssl.keystore.location={self.keystore} cannot be opened; expected a certificate and its key in {self.keystore_type}, and {password} if they have one"
            raise properties.error(msg) from error


def _type(properties: PropertiesFile, store: str, location: str) -> str:
    name = f"ssl.{store}.type"
    store_type = (properties.value(name) or "JKS").upper()
    if store_type not in {PEM, PKCS12}:
        msg = (
            f"{name} is {store_type}{'' if properties.value(name) else ', by default'}; expected PEM or PKCS12, which all clients can read: "
            f"keytool -importkeystore -srckeystore {location} -destkeystore {location}.p12 -deststoretype PKCS12"
        )
        raise properties.error(msg)
    return store_type


def _trusted(properties: PropertiesFile, location: str) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    store_type = _type(properties, "truststore", location)
    certificates: list[x509.Certificate] = []
    with suppress(ValueError, OSError):
        content = Path(location).read_bytes()
        if store_type == PEM:
            certificates = x509.load_pem_x509_certificates(content)
        else:
            store = pkcs12.load_pkcs12(content, (properties.value("ssl.truststore.password") or "").encode())
            certificates = [extra.certificate for extra in store.additional_certs]
    if not certificates:
        msg = f"ssl.truststore.location={location} cannot be opened; expected certificates in {store_type}, and ssl.truststore.password if they have one"
        raise properties.error(msg)
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
