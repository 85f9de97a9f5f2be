"""A certificate that somebody else keeps in a folder, as cert-manager and a mounted Secret do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import attrs
import structlog

from multikueue.errors import SettingsError
from multikueue.webhook.certificates import UnusableError, read_certificates
from multikueued.webhook.tls import ServingTls

INTERVAL: Final = 30.0
"""Seconds between two looks: a certificate is renewed long before its predecessor ends."""
MAX_SIZE: Final = 1 << 20
"""Bytes of a file at most; a real one has some thousand."""

log = structlog.get_logger(__name__)


@attrs.frozen
class FileSet:
    """What the folder holds."""

    certificate: str
    key: str = attrs.field(repr=False)
    authorities: str
    """Empty if there is no `ca.crt`: somebody else tells API servers whom to trust."""


@attrs.define(eq=False)
class CertificateFiles:
    """`tls.crt`, `tls.key` and perhaps `ca.crt` of one folder. Implements `webhook_registering.Authorities`."""

    folder: Path
    tls: ServingTls
    clock: Callable[[], datetime]
    interval: float = INTERVAL
    changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _served: FileSet | None = attrs.field(default=None, init=False)
    _complaint: str = attrs.field(default="", init=False)

    async def load(self) -> None:
        """Read the folder for the first time, and serve what is there.

        Raises:
            SettingsError: it cannot be used.
        """
        try:
            await self._look()
        except UnusableError as error:
            raise SettingsError(
                f"webhook.certDir: {error}; put tls.crt and tls.key there, or leave certDir out to have a certificate "
                "made and renewed"
            ) from error

    async def run(self) -> None:
        """Look again and again until cancelled. What cannot be used is told, and what was served is served on."""
        while True:
            await anyio.sleep(self.interval)
            try:
                await self._look()
            except (
                UnusableError,
                SettingsError,
            ) as error:  # the latter: it cannot be loaded, as on a disk that is full
                if str(error) != self._complaint:
                    log.warning("certificate unusable", folder=str(self.folder), error=str(error))
                self._complaint = str(error)
            else:
                self._complaint = ""

    async def renew(self, trusted: str) -> str:
        """See `webhook_registering.Authorities`: somebody else renews; whom to trust stands in `ca.crt`."""
        del trusted
        return self._served.authorities if self._served is not None else ""

    def why_not_usable(self) -> str | None:
        """What is wrong with the certificate; None if API servers can accept it."""
        if self._served is None:
            return f"the certificate in {self.folder} is not read yet"
        ends = read_certificates(self._served.certificate)[0].not_valid_after_utc
        return None if self.clock() < ends else f"the certificate in {self.folder} has expired on {ends:%Y-%m-%d}"

    async def _look(self) -> None:
        found = await anyio.to_thread.run_sync(_read, self.folder, abandon_on_cancel=True)
        if found == self._served:
            return
        try:
            if found.authorities:
                read_certificates(found.authorities)
        except UnusableError as error:
            raise UnusableError(f"ca.crt in {self.folder} cannot be used: {error}") from None
        try:
            read_certificates(found.certificate)
            self.tls.load(found.certificate, found.key)
        except UnusableError as error:
            raise UnusableError(f"tls.crt and tls.key in {self.folder} cannot be used: {error}") from None
        self._served = found
        self.changed.set()
        self.changed = anyio.Event()


def _read(folder: Path) -> FileSet:
    authorities = folder / "ca.crt"
    return FileSet(
        _text(folder / "tls.crt"), _text(folder / "tls.key"), _text(authorities) if authorities.exists() else ""
    )


def _text(file: Path) -> str:
    try:
        with file.open("rb") as content:
            raw = content.read(MAX_SIZE)
        return raw.decode("ascii")
    except OSError as error:
        raise UnusableError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnusableError(f"{file} is not PEM text") from None
