"""The server's TLS: its certificate, and whose client certificates are believed. Both can be replaced meanwhile.

A client need not present a certificate: kubelet's probes have none. One that the authorities did not sign, or that has
expired, ends the handshake.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

import anyio
import attrs
import structlog

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError
from multikueue.webhook.certificates import UnusableError
from multikueued.logserver.frontproxy import CONFIG_KEY, CONFIG_MAP, FrontProxy
from multikueued.serving.serving_tls import ServingTls

INTERVAL: Final = 30.0
"""Seconds between two reads of the ConfigMap."""
RETRY: Final = 2.0
"""The same while nothing is known yet."""

Get = Callable[[Resource, ObjectKey], Any]

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class FrontTls(ServingTls):
    """The TLS context of new connections; open ones keep theirs, and are told when it counts no more."""

    front: FrontProxy | None = attrs.field(default=None, init=False)
    """Whom to believe; None: not known yet, so nobody."""
    _pair: tuple[str, str] | None = attrs.field(default=None, init=False, repr=False)
    _authorities: WeakKeyDictionary[ssl.SSLContext, str] = attrs.field(factory=WeakKeyDictionary, init=False)
    """By context: who signs the certificates that it has let in."""

    def load(self, certificate: str, key: str) -> None:
        """See `ServingTls.load`."""
        self._renew(self.front, (certificate, key))

    def believe(self, front: FrontProxy) -> None:
        """Believe this front proxy from now on, and no other.

        Raises:
            UnusableError: its authorities cannot be used; the ones before stay.
        """
        if self.front is None or front.authorities != self.front.authorities:
            self._renew(front, self._pair)
        self.front = front

    @property
    def why_not_ready(self) -> str | None:
        """What is missing; None: nothing."""
        if self.front is None:
            return f"ConfigMap {CONFIG_KEY} has not been read: nobody can be believed"
        return None if self._pair is not None else "there is no certificate yet"

    def is_current(self, context: ssl.SSLContext) -> bool:
        """Whether a connection's certificate was verified against the authorities that count now."""
        return self.front is not None and self._authorities.get(context) == self.front.authorities

    def _renew(self, front: FrontProxy | None, pair: tuple[str, str] | None) -> None:
        made = ServingTls()
        context = made.context
        context.options |= ssl.OP_NO_TICKET  # a session that is resumed would not be verified again
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go: what is listed is trusted, root or not
        # Authorities that kubeadm makes lack fields that Python 3.13 requires and Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if front is not None:
            try:
                context.load_verify_locations(cadata=front.authorities)
            except (ssl.SSLError, ValueError) as error:
                raise UnusableError("its requestheader-client-ca-file is no PEM with authorities") from error
        if pair is not None:
            made.load(*pair)
        self._authorities[context] = front.authorities if front is not None else ""
        self.context, self._pair = context, pair


async def follow_front_proxy(get: Get, tls: FrontTls) -> None:
    """Read the ConfigMap until cancelled. What cannot be read or used is logged; what was believed before stays."""
    told = ""
    while True:
        try:
            tls.believe(FrontProxy.read(await get(CONFIG_MAP, CONFIG_KEY)))
            told = ""
        except (ApiError, UnusableError) as error:
            if str(error) != told:
                log.warning("cannot tell whom to believe", configMap=str(CONFIG_KEY), error=str(error))
            told = str(error)
        await anyio.sleep(RETRY if tls.front is None else INTERVAL)


def peer_of(connection: Any, now: datetime) -> Mapping[str, Any] | None:
    """The client's certificate, if there is one and it has not expired since the handshake.

    Args:
        connection: the `ssl` object of the connection; None: it has no TLS.
        now: the wall clock.
    """
    found: Json | None = connection.getpeercert() if connection is not None else None
    if not found or ssl.cert_time_to_seconds(str(found["notAfter"])) <= now.timestamp():
        return None
    return found
