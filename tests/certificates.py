"""Certificates for the tests: authorities, servers and clients, as valid or as expired as they are asked to be."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, and the authority's above it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    authority: x509.Certificate

    def pem(self, path: Path, password: str | None = None) -> Path:
        """Writes key and chain into one file of PEM, as Kafka takes a keystore."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        parts = [self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)]
        parts += [one.public_bytes(Encoding.PEM) for one in (self.certificate, self.authority)]
        path.write_bytes(b"".join(parts))
        return path

    def pkcs12(self, path: Path, password: str) -> Path:
        """Writes the same as a PKCS12 keystore."""
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, [self.authority], encryption))
        return path


class Authority:
    """An authority that signs certificates."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        unsigned = _unsigned(self._name, self._name, self._key, datetime.now(UTC) + 30 * DAY)
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        unsigned = unsigned.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.certificate = unsigned.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    def issue(self, name: str, hosts: tuple[str, ...] = (), *, expired: bool = False) -> Issued:
        """A certificate of `name`, for a server's `hosts` (addresses or names)."""
        key = ec.generate_private_key(ec.SECP256R1())
        ends = datetime.now(UTC) + (-DAY if expired else 30 * DAY)
        unsigned = _unsigned(_named(name), self._name, key, ends)
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # Python 3.13 and later require it.
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        unsigned = unsigned.add_extension(by, critical=False)
        if hosts:
            unsigned = unsigned.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
        return Issued(key, unsigned.sign(self._key, hashes.SHA256()), self.certificate)

    def pem(self, path: Path) -> Path:
        """Writes its own certificate, as PEM."""
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return path

    def pkcs12(self, path: Path, password: str) -> Path:
        """Writes its own certificate as a truststore, as Java takes it."""
        trusted = [pkcs12.PKCS12Certificate(self.certificate, b"authority")]
        path.write_bytes(pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(password.encode())))
        return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _unsigned(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(ends - 60 * DAY).not_valid_after(ends)
