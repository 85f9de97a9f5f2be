"""The webhook's own certificates, as a TLS client and a calendar see them."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtensionOID

from multikueue.webhook.certificates import (
    ServerKeyPair,
    is_for,
    is_signed_by,
    make_authority,
    make_certificate,
    pem,
    read_certificates,
    read_pair,
)
from multikueue.webhook.errors import UnusableError
from multikueue.webhook.rotation import (
    AUTHORITY_LIFETIME,
    SERVING_LIFETIME,
    SETTLING,
    WebhookCredentials,
    is_usable,
    renewed,
)

START = datetime(2026, 1, 1, 12, 30, 15, 250_000, tzinfo=UTC)
HOST = "multikueue-webhook.kueue-system.svc"
DAY = timedelta(days=1)


def fresh() -> WebhookCredentials:
    made = renewed(None, HOST, START)
    assert made is not None
    return made


def with_key_of_another_sort(certificate: str) -> str:
    """The same certificate with a number for its key's sort that nobody has given out."""
    der = ssl.PEM_cert_to_DER_cert(certificate)
    elliptic, unknown = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0209")
    assert elliptic in der
    return ssl.DER_cert_to_PEM_cert(der.replace(elliptic, unknown))


def with_damaged_names(credentials: WebhookCredentials) -> WebhookCredentials:
    """A pair of the same authority whose alternative names are no ASN.1."""
    key, issuer = credentials.serving.key, credentials.authority
    names = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"garbage")
    builder = (
        x509.CertificateBuilder()
        .subject_name(credentials.serving.certificate.subject)
        .issuer_name(issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START)
        .not_valid_after(START + 80 * DAY)
        .add_extension(names, critical=False)
    )
    return attrs.evolve(credentials, serving=ServerKeyPair(builder.sign(issuer.key, hashes.SHA256()), key))


def accepted(credentials: WebhookCredentials, bundle: str, host: str, now: datetime) -> bool:
    """Whether a TLS client that trusts `bundle` accepts the server at that time, by its dates and signatures."""
    serving = credentials.serving.certificate
    if not serving.not_valid_before_utc <= now < serving.not_valid_after_utc or not is_for(serving, host):
        return False
    return any(
        is_signed_by(serving, authority) and authority.not_valid_before_utc <= now < authority.not_valid_after_utc
        for authority in credentials.authorities
        if pem(authority) in bundle
    )


def handshake(credentials: WebhookCredentials, host: str) -> str:
    """A TLS handshake in memory, with OpenSSL's own judgement; returns the protocol's version."""
    client, server = ssl.create_default_context(cadata=credentials.bundle), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    load(server, credentials)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return sides[0].version() or "no handshake"


def load(context: ssl.SSLContext, credentials: WebhookCredentials) -> None:
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(pem(credentials.serving.certificate) + credentials.serving.key_pem)
        file.flush()
        context.load_cert_chain(file.name)


class TestCertificates:
    @pytest.mark.parametrize("host", [HOST, "127.0.0.1", "::1", "x" * 63 + "." + "y" * 63 + ".svc"])
    def test_a_strict_client_that_trusts_the_authority_accepts_the_server(self, host: str) -> None:
        authority = make_authority("ours", datetime.now(UTC), DAY)
        serving = make_certificate(authority, host, datetime.now(UTC), DAY)
        credentials = WebhookCredentials(serving, (authority.certificate,), authority)

        assert handshake(credentials, host) == "TLSv1.3"
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(credentials, "other.kueue-system.svc")

    def test_a_certificate_never_outlives_its_authority(self) -> None:
        authority = make_authority("ours", START, DAY)
        serving = make_certificate(authority, HOST, START, 10 * DAY)
        assert serving.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc

    def test_clocks_that_are_a_little_behind_do_not_matter(self) -> None:
        assert make_authority("ours", START, DAY).certificate.not_valid_before_utc < START - timedelta(minutes=30)

    def test_a_key_of_another_certificate_is_refused_without_being_shown(self) -> None:
        first, second = (make_authority(name, START, DAY) for name in ("one", "other"))
        with pytest.raises(UnusableError, match="the key is not the certificate's") as caught:
            read_pair(pem(first.certificate), second.key_pem)
        assert "BEGIN" not in repr(caught.value)

    def test_a_pair_does_not_show_its_key(self) -> None:
        assert "key" not in repr(make_authority("ours", START, DAY)).replace("KeyPair", "").lower()


class TestKeeping:
    def test_what_was_written_is_read_again(self) -> None:
        made = fresh()
        again = WebhookCredentials.read(made.written())

        assert again.written() == made.written()
        assert renewed(again, HOST, START) is None

    @pytest.mark.parametrize("field", ["tls.crt", "tls.key", "ca.crt", "ca.key"])
    @pytest.mark.parametrize("value", ["", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    def test_what_is_missing_or_damaged_is_refused_without_being_shown(self, field: str, value: str) -> None:
        written = fresh().written()
        with pytest.raises(UnusableError) as caught:
            WebhookCredentials.read({**written, field: value})
        assert "BEGIN" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_a_key_of_another_sort_is_refused(self) -> None:
        """Somebody else's certificate in our Secret is replaced, not used."""
        key = ed25519.Ed25519PrivateKey.generate()
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        with pytest.raises(UnusableError, match="not of an elliptic curve"):
            WebhookCredentials.read({**fresh().written(), "tls.key": text})

    def test_what_the_library_reads_but_cannot_understand_is_refused_too(self) -> None:
        """A certificate is read bit by bit, as it is asked: a fault may come to light late."""
        made = fresh()
        strange = with_key_of_another_sort(pem(made.serving.certificate))
        with pytest.raises(UnusableError, match="not of an elliptic curve"):
            WebhookCredentials.read({**made.written(), "tls.crt": strange})

        authorities = (made.authority.certificate, *read_certificates(strange))
        known = attrs.evolve(made, authorities=authorities)
        assert renewed(known, HOST, START) is None
        assert not is_signed_by(made.serving.certificate, authorities[1])

    def test_names_that_cannot_be_read_are_no_names(self) -> None:
        made = fresh()
        damaged = with_damaged_names(made)
        assert not is_for(damaged.serving.certificate, HOST)
        wanted = renewed(damaged, HOST, START)
        assert wanted is not None
        assert is_for(wanted.serving.certificate, HOST)


class TestRotation:
    def test_nothing_changes_while_everything_is_young(self) -> None:
        made = fresh()
        for age in (timedelta(0), DAY, SERVING_LIFETIME / 2):
            assert renewed(made, HOST, START + age, made.bundle) is None

    def test_the_certificate_is_replaced_weeks_before_it_expires_by_the_same_authority(self) -> None:
        made = fresh()
        later = renewed(made, HOST, START + SERVING_LIFETIME - 29 * DAY, made.bundle)

        assert later is not None
        assert later.bundle == made.bundle
        assert later.serving != made.serving

    def test_a_new_host_needs_a_new_certificate_at_once(self) -> None:
        """Somebody renamed the Service."""
        made = renewed(fresh(), "other.svc", START)
        assert made is not None
        assert is_for(made.serving.certificate, "other.svc")

    def test_a_new_authority_is_announced_before_it_signs(self) -> None:
        old = fresh()
        now = START + AUTHORITY_LIFETIME - 100 * DAY
        old = renewed(old, HOST, now - 25 * DAY, old.bundle) or old
        announced = renewed(old, HOST, now, old.bundle)

        assert announced is not None
        assert len(announced.authorities) == 2
        assert announced.serving == old.serving
        assert renewed(announced, HOST, now + SETTLING / 2, announced.bundle) is None
        assert renewed(announced, HOST, now + 2 * SETTLING, old.bundle) is None  # nobody has been told
        switched = renewed(announced, HOST, now + 2 * SETTLING, announced.bundle)
        assert switched is not None
        assert is_signed_by(switched.serving.certificate, announced.authorities[0])
        assert switched.bundle == announced.bundle

    def test_an_expired_one_is_replaced_even_if_nobody_has_been_told(self) -> None:
        """There is nothing left to lose by it."""
        made = renewed(fresh(), HOST, START + SERVING_LIFETIME + DAY, "")
        assert made is not None
        assert is_usable(made, START + SERVING_LIFETIME + DAY)

    def test_after_a_year_without_us_everything_is_new(self) -> None:
        old, now = fresh(), START + AUTHORITY_LIFETIME + DAY
        made = renewed(old, HOST, now, old.bundle)

        assert made is not None
        assert not is_usable(old, now)
        assert is_usable(made, now)
        assert old.bundle not in made.bundle

    def test_over_five_years_every_client_accepts_every_replica_at_any_time(self) -> None:
        """A client may have read its bundle, and a replica its certificate, an hour ago."""
        now = changed = START
        credentials, bundle = fresh(), ""
        seen = [(credentials, credentials.bundle)] * 2
        changes = 0
        while now < START + 5 * AUTHORITY_LIFETIME:
            now += timedelta(minutes=30) if now - changed < 4 * SETTLING else DAY / 2
            wanted = renewed(credentials, HOST, now, bundle)
            if wanted is not None:
                credentials, changed, changes = wanted, now, changes + 1
            bundle = credentials.bundle
            seen = [*seen[-1:], (credentials, bundle)]
            pairs = {(id(served), bundle): served for served, _ in seen for _, bundle in seen}
            assert all(accepted(served, bundle, HOST, now) for (_, bundle), served in pairs.items()), now
            assert len(credentials.authorities) <= 2

        assert 5 * 365 / 90 < changes < 60
