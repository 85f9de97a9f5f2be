"""What a request is authenticated with, and who provides it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import attrs


@attrs.frozen
class KeyPair:
    """A client certificate and its key, as PEM texts."""

    certificate: str = attrs.field(repr=False)
    key: str = attrs.field(repr=False)


@attrs.frozen
class Credential:
    """A bearer token, or a client certificate, or both. Neither: the configuration has a certificate, or nothing."""

    token: str = attrs.field(default="", repr=False)
    pair: KeyPair | None = None
    expires: datetime | None = None
    """None: it is good until the server refuses it."""
    scheme: str = "Bearer"
    """What stands before the token; empty: nothing does."""


class CredentialSource(Protocol):
    """A source of credentials."""

    async def credential(self, refused: Credential | None = None) -> Credential:
        """The credential to use.

        Args:
            refused: one that the server has just answered with 401: return a newer one if there is one.

        Raises:
            Unauthorized: there is none.
        """
