"""A server's TLS: its certificate, and whose client certificates are believed. Both can be replaced meanwhile.

Whom the manager's API servers trust is in one ConfigMap of theirs. A client need not present a certificate unless that
is demanded: kubelet's probes have none. One that the authorities did not sign, or that has expired, ends the handshake.
"""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import anyio
import attrs

from multikueue.core.model.kinds import CONFIG_MAP
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.webhook.errors import UnusableError
from multikueued.serving.looking import look_again
from multikueued.serving.serving_tls import ServingTls

CONFIG_KEY: Final = ObjectKey("kube-system", "extension-apiserver-authentication")
"""The ConfigMap in which API servers say who signs the certificates of their callers, and of themselves."""
INTERVAL: Final = 30.0
"""Seconds between two reads of the ConfigMap."""
RETRY: Final = 2.0
"""The same while nothing is known yet."""

Get = Callable[[Resource, ObjectKey], Any]


@attrs.define(eq=False)
class CallerTls(ServingTls, ABC):
    """The TLS context of new connections; open ones keep theirs, and are told when it counts no more."""

    authorities: str = attrs.field(default="", init=False, repr=False)
    """PEM: who signs the certificates of those who are believed; empty: not known yet, so nobody is."""
    ready: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    """Set once there is a certificate, and somebody is believed."""
    _pair: tuple[str, str] | None = attrs.field(default=None, init=False, repr=False)
    _by_context: WeakKeyDictionary[ssl.SSLContext, str] = attrs.field(factory=WeakKeyDictionary, init=False)
    """Who signs the certificates that it has let in."""

    demanded: ClassVar[bool] = False
    """Whether the handshake fails without a client certificate."""
    field: ClassVar[str] = "requestheader-client-ca-file"
    """Of the ConfigMap: has the authorities."""

    def load(self, certificate: str, key: str) -> None:
        """See `ServingTls.load`."""
        self._renew(self.authorities, (certificate, key))

    @abstractmethod
    def take(self, config_map: Json) -> None:
        """Believe whom the ConfigMap names from now on, and nobody else.

        Raises:
            UnusableError: it names nobody, or its authorities cannot be used; the ones before stay.
        """

    def trust(self, authorities: str) -> None:
        """Believe those whose certificates these authorities have signed; raises as `take`."""
        if authorities != self.authorities:
            self._renew(authorities, self._pair)
            self.authorities = authorities

    @property
    def why_not_ready(self) -> str | None:
        """What is missing; None: nothing."""
        if not self.authorities:
            return f"ConfigMap {CONFIG_KEY} has not been read: nobody can be believed"
        return None if self._pair is not None else "there is no certificate yet"

    def is_current(self, context: ssl.SSLContext) -> bool:
        """Whether a connection's certificate was verified against the authorities that count now."""
        return bool(self.authorities) and self._by_context.get(context) == self.authorities

    def _renew(self, authorities: str, pair: tuple[str, str] | None) -> None:
        made = ServingTls()
        context = made.context
        context.options |= ssl.OP_NO_TICKET  # a session that is resumed would not be verified again
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_REQUIRED if self.demanded else ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go: what is listed is trusted, root or not
        # Authorities that kubeadm makes lack fields that Python 3.13 requires and Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if authorities:
            try:
                context.load_verify_locations(cadata=authorities)
            except (ssl.SSLError, ValueError) as error:
                raise UnusableError(f"its {self.field} is no PEM with authorities") from error
        if pair is not None:
            made.load(*pair)
        self._by_context[context] = authorities
        self.context, self._pair = context, pair
        if authorities and pair is not None:
            self.ready.set()


async def follow_authorities(get: Get, tls: CallerTls) -> None:
    """Read the ConfigMap until cancelled. What cannot be read or used is logged; what was believed before stays."""

    async def look() -> None:
        tls.take(await get(CONFIG_MAP, CONFIG_KEY))

    def pause(_: bool) -> float:
        return INTERVAL if tls.authorities else RETRY

    await look_again(look, pause, "cannot tell whom to believe", configMap=str(CONFIG_KEY))


def peer_of(connection: Any, now: datetime) -> Mapping[str, Any] | None:
    """The client's certificate, if there is one and it has not expired since the handshake.

    Args:
        connection: the `ssl` object of the connection; None: it has no TLS.
        now: the wall clock.
    """
    certificate: Json | None = connection.getpeercert() if connection is not None else None
    if not certificate or ssl.cert_time_to_seconds(str(certificate["notAfter"])) <= now.timestamp():
        return None
    return certificate
