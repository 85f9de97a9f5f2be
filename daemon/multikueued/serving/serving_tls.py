"""The TLS of our servers: one context, whose certificate can be replaced while it serves."""

from __future__ import annotations

import ssl

import attrs

from multikueue.errors import SettingsError
from multikueue.kube.http.transport import load_key_pair
from multikueue.webhook.errors import UnusableError


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@attrs.define(eq=False)
class ServingTls:
    """The TLS context of the server. New connections get the certificate that was loaded last; open ones keep theirs.

    Without a certificate every handshake fails.
    """

    context: ssl.SSLContext = attrs.field(factory=_context)

    def load(self, certificate: str, key: str) -> None:
        """Serve this certificate to new connections.

        Args:
            certificate: PEM, with the chain up to the authority that clients trust.
            key: its private key, PEM without a password.

        Raises:
            UnusableError: they are no pair; the old certificate stays. The message quotes nothing of them.
            SettingsError: there is no folder for temporary files.
        """
        try:
            # First into a new context: a failure half-way leaves a context without a usable pair.
            load_key_pair(certificate, key, _context(), self.context)
        except ssl.SSLError:
            raise UnusableError("they are not a PEM certificate and its key without a password") from None
        except OSError as error:
            why = f"cannot write a temporary file: {error.strerror}; OpenSSL reads certificates from files only"
            raise SettingsError(f"{why}. Give the process a folder for them, with TMPDIR or at /tmp") from None
