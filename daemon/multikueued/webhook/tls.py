"""The TLS context of a server whose certificate changes while it serves."""

from __future__ import annotations

import ssl
import tempfile
from typing import Self

import attrs

from multikueue.errors import SettingsError
from multikueue.webhook.certificates import UnusableError


@attrs.define(eq=False)
class ServingTls:
    """A context that new connections take the newest certificate from; those that are open keep theirs.

    Without a certificate it refuses every handshake.
    """

    context: ssl.SSLContext

    @classmethod
    def empty(cls) -> Self:
        """Without a certificate."""
        return cls(_context())

    def load(self, certificate: str, key: str) -> None:
        """Serve this certificate from now on.

        Args:
            certificate: PEM, with the chain up to what clients trust.
            key: its private key, PEM without a password.

        Raises:
            UnusableError: they are no pair; what was served before is served on. The message shows nothing of them.
            SettingsError: there is no folder for temporary files.
        """
        try:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable by us alone, and gone at once
                file.write(f"{certificate}\n{key}\n")
                file.flush()
                self._load(file.name)
        except ssl.SSLError:
            raise UnusableError("they are not a PEM certificate and its key without a password") from None
        except OSError as error:
            why = f"cannot write a temporary file: {error.strerror}; OpenSSL reads certificates from files only"
            raise SettingsError(f"webhook: {why}. Give the process a folder for them, with TMPDIR or at /tmp") from None

    def _load(self, file: str) -> None:
        # First where nobody is served: a context is left without a usable pair if this fails half-way.
        for context in (_context(), self.context):
            # With a password given, an encrypted key is an error; without, OpenSSL would ask at the terminal.
            context.load_cert_chain(file, password="")


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
