"""Serves a certificate from a folder in which somebody else renews it, as cert-manager does in a mounted Secret."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import anyio
import anyio.to_thread
import attrs

from multikueue.errors import SettingsError
from multikueue.runtime.loop import utc_now
from multikueue.webhook.certificates import read_certificates
from multikueue.webhook.errors import UnusableError
from multikueued.serving.looking import look_again
from multikueued.serving.serving_tls import ServingTls

INTERVAL: Final = 30.0
"""Seconds between two reads: a certificate is renewed long before the old one expires."""
MAX_SIZE: Final = 1 << 20
"""The most bytes of a file; a real one has a few thousand."""


@attrs.frozen
class FileSet:
    """The contents of the folder."""

    certificate: str
    key: str = attrs.field(repr=False)
    authorities: str
    """Empty if there is no `ca.crt`: then somebody else writes the `caBundle`."""


@attrs.define(eq=False)
class CertificateFolder:
    """The certificate in a folder. Implements `multikueue.webhook.registrar.Authorities`."""

    folder: Path
    tls: ServingTls
    clock: Callable[[], datetime]
    interval: float
    _served: FileSet
    changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @classmethod
    async def open(
        cls,
        folder: str,
        tls: ServingTls,
        setting: str,
        otherwise: str,
        *,
        clock: Callable[[], datetime] = utc_now,
        interval: float = INTERVAL,
    ) -> Self:
        """Serve the certificate of a folder.

        Args:
            folder: with `tls.crt`, `tls.key` and perhaps `ca.crt`.
            tls: serves the certificate.
            setting: which names the folder, for the error.
            otherwise: what to do without a certificate, for the error.
            clock: the wall clock.
            interval: seconds between two reads.

        Raises:
            SettingsError: it cannot be used.
        """
        try:
            return cls(Path(folder), tls, clock, interval, await _serve(Path(folder), tls, None))
        except UnusableError as error:
            raise SettingsError(f"{setting}: {error}; put tls.crt and tls.key there, or {otherwise}") from error

    async def run(self) -> None:
        """Read the folder every `interval` until cancelled. Log what cannot be used, and go on serving the last one."""
        await anyio.sleep(self.interval)
        await look_again(self._look, lambda _: self.interval, "certificate unusable", folder=str(self.folder))

    async def _look(self) -> None:
        files = await _serve(self.folder, self.tls, self._served)
        if files is not self._served:
            self._served = files
            self.changed.set()
            self.changed = anyio.Event()

    async def renew(self, trusted: str) -> str:
        """See `Authorities`: somebody else renews; the authorities are in `ca.crt`."""
        return self._served.authorities

    def why_not_usable(self) -> str | None:
        """What is wrong with the certificate; None if API servers can accept it."""
        ends = read_certificates(self._served.certificate)[0].not_valid_after_utc
        return None if self.clock() < ends else f"the certificate in {self.folder} has expired on {ends:%Y-%m-%d}"


async def _serve(folder: Path, tls: ServingTls, served: FileSet | None) -> FileSet:
    """Serve the certificate of the folder unless it is served already; return what is served now."""
    files = await anyio.to_thread.run_sync(_read, folder, abandon_on_cancel=True)
    if files == served:
        return served
    names = "ca.crt"
    try:
        if files.authorities:
            read_certificates(files.authorities)
        names = "tls.crt and tls.key"
        read_certificates(files.certificate)
        tls.load(files.certificate, files.key)
    except UnusableError as error:
        raise UnusableError(f"{names} in {folder} cannot be used: {error}") from None
    return files


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
