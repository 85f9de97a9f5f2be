"""The API server: a registry behind HTTP, with TLS, tokens, kubeconfigs, faults and a garbage collector."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections import Counter
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Self

import anyio
import attrs
import trustme
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from multikueue.core.model.names import Json
from multikueue.errors import SandboxError
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.apiserver.faults import Faults
from multikueue.sandbox.apiserver.identity.access import Access
from multikueue.sandbox.apiserver.serving.handling import Handler
from multikueue.sandbox.apiserver.serving.kubelets import Kubelets, untrusting
from multikueue.sandbox.apiserver.serving.representations import MAX_BODY
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.cluster import Clock
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.apiserver.verbs.updating import Target

_AUTHENTICATION = ("kube-system", "extension-apiserver-authentication")
"""Namespace and name of the ConfigMap that says whom the server trusts."""
_CLOSE_TIMEOUT = 5.0  # seconds; handlers end at once when their connection is cut, so this is never reached


class ApiServer:
    """A Kubernetes API server in this process::

        async with ApiServer("worker1", tokens={"secret": "admin"}) as server:
            config = server.kubeconfig("admin")

    `registry`, `faults`, `access`, `tokens` and `requests` work before the start too, so `DirectClient` needs no
    start at all. After `access.enforce_roles()` service accounts may only do what roles allow.

    Args:
        name: of the cluster, in kubeconfigs and messages.
        host: address to listen on.
        port: 0 for any free one.
        tls: whether to serve HTTPS, under a CA made for this server.
        tokens: user by bearer token; None lets everyone in.
        clock: the wall clock that timestamps are read from.
        seed: of everything random: uids, generated names, fault probabilities.
        registry: a registry made elsewhere; one is made from clock and seed otherwise.
    """

    def __init__(
        self,
        name: str = "cluster",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = True,
        tokens: dict[str, str] | None = None,
        clock: Clock = utc_now,
        seed: int = 0,
        registry: Registry | None = None,
    ) -> None:
        self.name = name
        self.registry = registry or Registry(name, clock=clock, seed=seed)
        self.faults = Faults(seed)
        self.access = Access(self.registry, tokens)
        self._kubelets = Kubelets(self.registry)
        self._host = host
        self._port = port
        self._uses_tls = tls
        self._tls: ServerTls | None = None
        self._web: web.Server | None = None
        self._stack = AsyncExitStack()

    def __repr__(self) -> str:
        return f"<ApiServer {self.name} at {self.url}>"

    @property
    def tokens(self) -> dict[str, str] | None:
        """User by token; change it to add or revoke one."""
        return self.access.tokens

    @property
    def requests(self) -> Counter[tuple[str, str, str]]:
        """How many requests came in by (user, verb, resource); the resource is `jobs.batch`."""
        return self.access.requests

    @property
    def port(self) -> int:
        """The port; 0 until the server has one."""
        return self._port

    @property
    def _address(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._uses_tls else 'http'}://{self._address}"

    @property
    def ca_pem(self) -> str | None:
        """The CA certificate clients must trust; None without TLS or before the start."""
        return self._tls.ca_pem if self._tls else None

    def kubeconfig(self, user: str = "admin") -> Json:
        """A kubeconfig for a user.

        Raises:
            SandboxError: the user has no token.
        """
        self.check_user(user)
        token = self.access.token_of(user)
        return kubeconfig(name=self.name, url=self.url, ca_pem=self.ca_pem, user=user, token=token)

    def check_user(self, user: str) -> None:
        """Refuse a user whom every call would be refused to.

        Raises:
            SandboxError: the user has no token.
        """
        tokens = self.access.tokens
        if tokens is not None and user not in tokens.values():
            users = ", ".join(dict.fromkeys(tokens.values()))
            raise SandboxError(
                f"cluster {self.name!r} has no token for user {user!r}: its users are {users or 'none'}; "
                "add a token to `tokens`"
            )

    def drop_connections(self) -> None:
        """Reset every open connection."""
        self.faults.connections.drop()

    def compact(self) -> None:
        """Forget history: whoever continues from an older resourceVersion gets 410."""
        self.registry.compact()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(group.cancel_scope.cancel)
            group.start_soon(self.registry.run_collector)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            # The body's own error comes back alone, not wrapped by a task group the caller does not know of.
            if group.exceptions != (error,):
                raise

    async def _listen(self, stack: AsyncExitStack) -> None:
        if self._uses_tls:
            self._tls = ServerTls.issue(self._host)
            self._kubelets.tls = self._tls.client
            self._publish_authority(self._tls.ca_pem)
        self._web = web.Server(
            Handler(self.registry, self.access, self.faults, lambda: self._address, self._kubelets),
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
        )
        runner = web.ServerRunner(self._web, shutdown_timeout=_CLOSE_TIMEOUT)
        stack.push_async_callback(self._close, runner)
        await runner.setup()
        context = self._tls.context if self._tls else None
        site = web.TCPSite(runner, self._host, self._port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            raise SandboxError(
                f"cluster {self.name!r} cannot listen on {self._address}: {error.strerror or error}; "
                "choose another port, or 0 for any free one"
            ) from error
        self._port = site.port
        self.faults.connections.opened(self._abort_all)

    def _publish_authority(self, ca_pem: str) -> None:
        """Say who signs the certificate that kubelets are asked with, where a real one says it."""
        row = self.registry.cluster.type_of("", "v1", "configmaps")
        namespace, name = _AUTHENTICATION
        obj = {"metadata": {"name": name, "namespace": namespace}, "data": {"client-ca-file": ca_pem}}
        with suppress(StatusError):  # of an earlier start
            self.registry.delete(Target(row, namespace, name), DeleteOptions())
        self.registry.create_object({"apiVersion": "v1", "kind": "ConfigMap", **obj}, manager="kube-apiserver")

    def _abort_all(self) -> None:
        for connection in self._web.connections if self._web else ():
            if connection.transport:
                connection.transport.abort()

    async def _close(self, runner: web.ServerRunner) -> None:
        with anyio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            self._abort_all()
            self.faults.connections.closed(self._abort_all)
            await runner.cleanup()


def _make_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)


@attrs.frozen
class ServerTls:
    """The server's TLS context, the one it asks kubelets with, and the CA certificate its clients must trust.

    That CA signs both certificates, as kubeadm has it; so are the client's name and group.
    """

    context: ssl.SSLContext
    client: ssl.SSLContext
    ca_pem: str

    @classmethod
    def issue(cls, host: str) -> ServerTls:
        """Make a CA and a certificate for a host name or address."""
        authority = trustme.CA()
        certificate = authority.issue_cert(host, "localhost")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate.configure_cert(context)
        client = untrusting()
        shown = authority.issue_cert(
            common_name="kube-apiserver-kubelet-client", organization_name="kubeadm:cluster-admins"
        )
        shown.configure_cert(client)
        return cls(context, client, authority.cert_pem.bytes().decode())


def kubeconfig(*, name: str, url: str, ca_pem: str | None, user: str, token: str | None) -> Json:
    """A kubeconfig with one cluster, one user and one context."""
    cluster: Json = {"server": url}
    if ca_pem:
        cluster["certificate-authority-data"] = base64.b64encode(ca_pem.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
    }
