"""Sockets, TLS settings and aiohttp sessions, and the time that one call may take."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import weakref
from asyncio.trsock import TransportSocket
from contextvars import ContextVar
from typing import Any, Final, cast

import aiohttp
import anyio
import attrs
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from multikueue.errors import KubeconfigError
from multikueue.kube.credentials.credential import KeyPair
from multikueue.kube.http.name_lookup import CACHED, NameLookup
from multikueue.kube.kubeconfigs.config import ClusterConfig


def _now() -> float:
    return asyncio.get_running_loop().time()  # anyio's takes ten times as long: it finds out which library runs


@attrs.define(eq=False)
class CallTime:
    """The time of one call. Its tries share the deadline; each may wait for a connection.

    A client has a limited number of connections, so with thousands of calls most wait, however fast the server is.
    That says nothing about the server, and a call that has only waited cannot have had an effect.
    """

    deadline: float
    """Seconds for the server, in all tries."""
    wait: float
    """Seconds until a try has a token and a connection, the lookup of the name and TLS included."""
    sent: bool = attrs.field(default=False, init=False)
    """Whether the current try had a connection: the server may have got it."""
    again: bool = attrs.field(default=False, init=False)
    """Whether any try had a second one: aiohttp sends a read, PUT or DELETE once more if the first has broken."""
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)
    _left: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = self.deadline
        self.scope.deadline = _now() + self.wait

    def waits(self) -> None:
        """The next try begins: the deadline stands still until it has a connection."""
        if self.sent:
            self._left = self.scope.deadline - _now()
            self.scope.deadline = _now() + self.wait
        self.sent = False

    def has_connection(self) -> None:
        """The try has a connection, and is about to be sent: perhaps again, since the first connection broke."""
        if self.sent:
            self.again = True
            return
        self.sent = True
        self.scope.deadline = _now() + self._left


CALL: Final[ContextVar[CallTime | None]] = ContextVar("call", default=None)
"""The call whose request this task sends; None: a stream."""


def has_connection() -> None:
    """Tell the call of this task that its request is sent next: aiohttp takes a connection and sends in one step."""
    if (call := CALL.get()) is not None:
        call.has_connection()


REASON: Final = "ClientConnectionFailed"
"""Kueue's condition reason for a configuration that is well-formed but makes no client."""
CLOSE_DEADLINE: Final = 2.0
"""Seconds to close connections properly; then they are dropped."""

POOLED_FOR: Final = 8.0
"""Seconds for which a connection stays open that nobody uses. Longer than `liveness.PROBE_EVERY` and shorter than twice
that: the probes of a server keep one of them open, and no more."""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
"""These notice a dead peer after about 30 s, on platforms that have them. aiohttp sets none of them."""


class Connector(aiohttp.TCPConnector):
    """One on which there is an answer that nobody asked for is no connection, and none outlives it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        used = weakref.WeakKeyDictionary[asyncio.BaseProtocol, asyncio.WriteTransport]()
        self._used: Final = used

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """See `aiohttp.BaseConnector`."""
        connection = await super().connect(req, traces, timeout)
        while connection.protocol is not None and connection.protocol.should_close:
            # A 408 on an idle connection would be taken for the answer to the next request, and that for the one after.
            connection.close()
            connection = await super().connect(req, traces, timeout)
        if connection.protocol is not None and connection.transport is not None:
            # No weak reference leads to a transport of uvloop. It lets go of its protocol once it is closed.
            self._used[connection.protocol] = cast(asyncio.WriteTransport, connection.transport)
        has_connection()
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Also those that were given back before their answer was whole: they wait for the server's end of TLS, and
        would be open after the loop has ended."""
        await super().close(abort_ssl=abort_ssl)
        for transport in self._used.values():
            transport.abort()


def keepalive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket with TCP keepalive."""
    family, kind, protocol = address[:3]
    sock = socket.socket(family, kind, protocol)
    keep_alive(sock)
    return sock


def keep_alive(sock: socket.socket | TransportSocket) -> None:
    """Have a dead peer noticed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def ssl_context(config: ClusterConfig, pair: KeyPair | None = None) -> ssl.SSLContext:
    """The TLS settings of a configuration.

    Args:
        config: how to reach the server.
        pair: takes the place of the configuration's client certificate.

    Raises:
        KubeconfigError: a certificate or key cannot be used.
    """
    try:
        context = ssl.create_default_context(cadata=config.ca_pem or None, cafile=config.files.ca or None)
    except (OSError, ValueError, TypeError) as error:
        named = config.files.ca or "certificate-authority-data"
        raise _unusable(config, f"{named} is not a PEM certificate") from error
    if not config.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # The self-signed certificates of kube-apiserver lack fields that Python 3.13 requires and Go does not.
    if not config.strict_tls:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # As Go and Python 3.13 do: a CA in a kubeconfig may be an intermediate one, or the server's own certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    pair = pair or (KeyPair(config.client_cert_pem, config.client_key_pem) if config.client_cert_pem else None)
    if pair is not None:
        try:
            load_key_pair(pair.certificate, pair.key, context)
        except (OSError, ValueError) as error:
            message = "client-certificate-data and client-key-data are not a PEM pair without a password"
            raise _unusable(config, message) from error
    elif config.files.client_cert:
        try:
            context.load_cert_chain(config.files.client_cert, config.files.client_key or None, password="")
        except (OSError, ValueError) as error:
            raise _unusable(config, f"{config.files.client_cert} and its key are not a PEM pair") from error
    return context


def open_session(config: ClusterConfig, names: NameLookup, connections: int, user_agent: str) -> aiohttp.ClientSession:
    """A session with one server, to which requests bring their TLS settings. `connections` 0: no limit."""
    connector = Connector(
        limit=connections,
        resolver=names,
        ttl_dns_cache=CACHED,
        keepalive_timeout=POOLED_FOR,
        socket_factory=keepalive_socket,
    )
    headers = {"accept": "application/json", "user-agent": user_agent}
    headers |= {name.lower(): value for name, value in config.headers}
    if config.disable_compression:
        headers["accept-encoding"] = "identity"
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        proxy=config.proxy or None,
        trust_env=False,  # it costs two thread switches a request
    )


def load_key_pair(certificate: str, key: str, *contexts: ssl.SSLContext) -> None:
    """Load a certificate and its key, through a temporary file that only we can read: ssl reads them from files only.

    Args:
        certificate: PEM, perhaps with its chain.
        key: PEM without a password.
        contexts: one after the other, up to the first that fails.

    Raises:
        ssl.SSLError: they are not a pair, or there is a password.
        OSError: the file cannot be written.
        ValueError: they are no text that can be written.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{certificate}\n{key}\n")
        file.flush()
        for context in contexts:
            # With an empty password an encrypted key is an error. Without one OpenSSL would prompt at the terminal.
            context.load_cert_chain(file.name, password="")


def _unusable(config: ClusterConfig, message: str) -> KubeconfigError:
    return KubeconfigError(REASON, f"{config.source}: {message}" if config.source else message)
