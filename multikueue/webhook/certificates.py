"""X.509: making a certificate authority and certificates for a server, and reading what was made."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from typing import Final

import attrs
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from multikueue.webhook.errors import UnusableError

BACKDATED: Final = timedelta(hours=1)
"""How far before its making a certificate begins to be valid: clocks of other machines may be behind."""

_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@attrs.frozen
class ServerKeyPair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = attrs.field(repr=False)

    @property
    def key_pem(self) -> str:
        """The private key, as PEM, not encrypted: never to be logged."""
        return private_pem(self.key)


def make_key() -> ec.EllipticCurvePrivateKey:
    """Make a private key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """A private key, as PEM, not encrypted: never to be logged."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def read_key(key_pem: str) -> ec.EllipticCurvePrivateKey:
    """Read a private key that was made here.

    Raises:
        UnusableError: it is none.
    """
    try:
        key = serialization.load_pem_private_key(key_pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusableError("the key is not a PEM private key without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableError("the key is not of an elliptic curve")
    return key


def make_authority(name: str, now: datetime, lifetime: timedelta) -> ServerKeyPair:
    """Make an authority that signs itself."""
    key = make_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    builder = (
        _builder(subject, subject, key, now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
    )
    return ServerKeyPair(builder.sign(key, hashes.SHA256()), key)


def make_certificate(authority: ServerKeyPair, host: str, now: datetime, lifetime: timedelta) -> ServerKeyPair:
    """Make a server's certificate, which ends with its authority's at the latest.

    Args:
        authority: signs it.
        host: the DNS name, or the IP address, clients know the server by.
        now: the wall clock.
        lifetime: how long it is valid.
    """
    key = make_key()
    issuer = authority.certificate
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    ends = min(now + lifetime, issuer.not_valid_after_utc)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _builder(subject, issuer.subject, key, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature", "key_encipherment"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([general_name(host)]), critical=False)
        .add_extension(signer, critical=False)
    )
    return ServerKeyPair(builder.sign(authority.key, hashes.SHA256()), key)


def pem(certificate: x509.Certificate) -> str:
    """A certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def read_pair(certificate_pem: str, key_pem: str) -> ServerKeyPair:
    """Read a pair that was made here.

    Raises:
        UnusableError: it is none.
    """
    certificate, key = read_certificates(certificate_pem)[0], read_key(key_pem)
    if key.public_key() != _public_key(certificate):
        raise UnusableError("the key is not the certificate's")
    return ServerKeyPair(certificate, key)


def _public_key(certificate: x509.Certificate) -> CertificatePublicKeyTypes:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableError("the certificate's key is not of an elliptic curve") from None


def read_certificates(pem: str) -> list[x509.Certificate]:
    """Read all certificates of a PEM text; there is at least one.

    Raises:
        UnusableError: there is none, or one cannot be read.
    """
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        raise UnusableError("it holds no PEM certificate") from None


def hosts_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    """Which hosts a certificate is for, as `general_name` writes them; empty: none, or what says so is damaged."""
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return []


def is_for(certificate: x509.Certificate, host: str) -> bool:
    """Whether a certificate is for exactly this host."""
    return hosts_of(certificate) == [general_name(host)]


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether an authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(ends)
        .add_extension(identifier, critical=False)
    )


def _usage(*allowed: str) -> x509.KeyUsage:
    """What a key may be used for, and nothing else."""
    return x509.KeyUsage(**{name: name in allowed for name in _USAGES})


def general_name(host: str) -> x509.GeneralName:
    """A host as certificates have it: a DNS name, or an IP address."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
