"""A certificate in a folder that somebody else renews."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import attrs
import pytest
import structlog
from cryptography.hazmat.primitives import serialization

from multikueue.errors import SettingsError
from multikueue.testing.waiting import background, running
from multikueue.webhook.certificates import make_authority, pem
from multikueue.webhook.errors import UnusableError
from multikueue.webhook.rotation import WebhookCredentials, renewed
from multikueued.serving.certificate_files import CertificateFolder
from multikueued.serving.serving_tls import ServingTls

SECRET_TEXT = "hunter2"


def now() -> datetime:
    return datetime.now(UTC)


@attrs.define(eq=False)
class SpyTls(ServingTls):
    """A context that also records what was loaded."""

    served: list[str] = attrs.field(factory=list)

    def load(self, certificate: str, key: str) -> None:
        super().load(certificate, key)
        self.served.append(certificate)


def made() -> WebhookCredentials:
    credentials = renewed(None, "localhost", now())
    assert credentials is not None
    return credentials


def put(folder: Path, credentials: WebhookCredentials, *, authorities: bool = True) -> None:
    (folder / "tls.crt").write_text(pem(credentials.serving.certificate))
    (folder / "tls.key").write_text(credentials.serving.key_pem)
    if authorities:
        (folder / "ca.crt").write_text(credentials.bundle)


async def files(folder: Path, *, ahead: timedelta = timedelta(0)) -> tuple[CertificateFolder, SpyTls]:
    tls = SpyTls()
    setting, otherwise = "webhook.certDir", "leave certDir out to have a certificate made and renewed"
    made = CertificateFolder.open(str(folder), tls, setting, otherwise, clock=lambda: now() + ahead, interval=0.01)
    return await made, tls


async def test_a_folder_as_cert_manager_makes_it_is_served_and_its_authority_written(tmp_path: Path) -> None:
    credentials = made()
    put(tmp_path, credentials)
    folder, tls = await files(tmp_path)

    assert tls.served == [pem(credentials.serving.certificate)]
    assert await folder.renew("") == credentials.bundle
    assert folder.why_not_usable() is None


async def test_without_an_authority_in_it_no_ca_bundle_is_written(tmp_path: Path) -> None:
    put(tmp_path, made(), authorities=False)
    folder, _ = await files(tmp_path)
    assert await folder.renew("") == ""


async def test_a_new_certificate_is_served_and_its_authority_written_without_a_restart(tmp_path: Path) -> None:
    first, second = made(), made()
    put(tmp_path, first)
    folder, tls = await files(tmp_path)
    async with running(folder.run):
        changed = folder.changed
        put(tmp_path, second)
        with anyio.fail_after(5):
            await changed.wait()
            while await folder.renew("") != second.bundle:
                await folder.changed.wait()
    assert tls.served[-1] == pem(second.serving.certificate)


async def test_a_folder_that_is_damaged_later_is_logged_once_and_the_last_certificate_is_served(tmp_path: Path) -> None:
    first, second = made(), made()
    put(tmp_path, first)
    folder, tls = await files(tmp_path)
    with structlog.testing.capture_logs() as lines:
        async with background() as tasks:
            (tmp_path / "tls.key").write_text(SECRET_TEXT)
            tasks.start_soon(folder.run)
            await anyio.sleep(0.2)
            assert len(lines) == 1
            changed = folder.changed
            put(tmp_path, second)
            with anyio.fail_after(5):
                await changed.wait()

    assert lines[0]["event"] == "certificate unusable"
    assert SECRET_TEXT not in str(lines)
    assert "BEGIN" not in str(lines)
    assert tls.served == [pem(credentials.serving.certificate) for credentials in (first, second)]


async def test_a_full_disk_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair is loaded from a temporary file; the last certificate stays."""
    put(tmp_path, made())
    folder, _ = await files(tmp_path)
    tries: list[anyio.Event] = [anyio.Event(), anyio.Event()]

    def full(self: SpyTls, certificate: str, key: str) -> None:
        next(event for event in tries if not event.is_set()).set()
        raise SettingsError("no space left on device")

    monkeypatch.setattr(SpyTls, "load", full)
    put(tmp_path, made())
    with structlog.testing.capture_logs() as lines:
        async with running(folder.run):
            with anyio.fail_after(5):
                await tries[1].wait()  # so it has gone on after the first
    assert lines[0]["event"] == "certificate unusable"


async def test_an_expired_certificate_ends_readiness(tmp_path: Path) -> None:
    put(tmp_path, made())
    folder, _ = await files(tmp_path, ahead=timedelta(days=100))
    assert (folder.why_not_usable() or "").startswith(f"the certificate in {tmp_path} has expired on 2")


async def refusal(folder: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        await files(folder)
    message = str(caught.value)
    assert message.startswith("webhook.certDir: ")
    assert "put tls.crt and tls.key there, or leave certDir out" in message
    assert "BEGIN" not in message
    assert SECRET_TEXT not in message
    assert "\n" not in message
    return message


class TestBadFolders:
    async def test_one_that_is_not_there(self, tmp_path: Path) -> None:
        assert f"cannot read {tmp_path}/none/tls.crt: No such file" in await refusal(tmp_path / "none")

    async def test_one_without_a_key(self, tmp_path: Path) -> None:
        put(tmp_path, made())
        (tmp_path / "tls.key").unlink()
        assert f"cannot read {tmp_path}/tls.key: No such file" in await refusal(tmp_path)

    async def test_a_key_that_is_a_folder(self, tmp_path: Path) -> None:
        put(tmp_path, made())
        (tmp_path / "tls.key").unlink()
        (tmp_path / "tls.key").mkdir()
        assert f"cannot read {tmp_path}/tls.key: Is a directory" in await refusal(tmp_path)

    async def test_a_key_of_another_certificate(self, tmp_path: Path) -> None:
        put(tmp_path, made())
        (tmp_path / "tls.key").write_text(made().serving.key_pem)
        assert "not a PEM certificate and its key without a password" in await refusal(tmp_path)

    async def test_a_key_with_a_password(self, tmp_path: Path) -> None:
        """Nobody is asked for it at a terminal."""
        credentials = made()
        put(tmp_path, credentials)
        encrypted = credentials.serving.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(SECRET_TEXT.encode()),
        )
        (tmp_path / "tls.key").write_bytes(encrypted)
        assert "without a password" in await refusal(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"hunter2", b"\xff\xfe\x00"])
    async def test_a_certificate_that_is_none(self, tmp_path: Path, content: bytes) -> None:
        put(tmp_path, made())
        (tmp_path / "tls.crt").write_bytes(content)
        assert "tls.crt" in await refusal(tmp_path)

    async def test_an_authority_that_is_none(self, tmp_path: Path) -> None:
        put(tmp_path, made())
        (tmp_path / "ca.crt").write_text(SECRET_TEXT)
        assert f"ca.crt in {tmp_path} cannot be used: it holds no PEM certificate" in await refusal(tmp_path)


def test_a_key_alone_is_never_loaded() -> None:
    """The error does not quote OpenSSL's words about keys."""
    pair = make_authority("ours", now(), timedelta(days=1))
    with pytest.raises(UnusableError) as caught:
        ServingTls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)).load(pair.key_pem, pair.key_pem)
    assert "BEGIN" not in str(caught.value)


def test_without_a_folder_for_temporary_files_that_is_told_and_no_server_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All servers load their pairs so: metrics, the page, the API and mirrors as well."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("multikueued.serving.serving_tls.load_key_pair", full)
    pair = make_authority("ours", now(), timedelta(days=1))
    with pytest.raises(SettingsError, match=r"^cannot write a temporary file: No space left on device; .*TMPDIR"):
        ServingTls().load(pem(pair.certificate), pair.key_pem)
