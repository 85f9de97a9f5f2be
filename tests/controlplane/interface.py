"""What a test sees of a cluster, whoever provides it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Protocol, Self

import anyio
import attrs

from multikueue.core.model.names import Json
from tests.controlplane import access
from tests.controlplane.api import Api
from tests.controlplane.credentials import ADMIN, kubeconfig
from tests.controlplane.errors import ControlPlaneError


@attrs.define(eq=False)
class Cluster(ABC):
    """One cluster, from `async with` to its end. It belongs to the event loop that entered it."""

    name: str
    _static_tokens: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)
    _account_tokens: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)
    _stack: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False, repr=False)
    _admin: Api | None = attrs.field(default=None, init=False, repr=False)

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()

    @property
    @abstractmethod
    def url(self) -> str:
        """The API server's address: the same after a restart."""

    @property
    @abstractmethod
    def ca_pem(self) -> str:
        """The certificate authority to trust: the same after a restart."""

    @property
    def admin(self) -> Api:
        """A client that may do everything."""
        if self._admin is None:
            raise ControlPlaneError(f"{self.name} does not run: enter it with `async with`.")
        return self._admin

    def token(self, user: str = ADMIN) -> str:
        """The bearer token of a user or service account."""
        tokens = self._static_tokens | self._account_tokens
        if user not in tokens:
            raise ControlPlaneError(f"{self.name} has no user {user!r}, only {', '.join(sorted(tokens))}.")
        return tokens[user]

    def kubeconfig(self, user: str = ADMIN) -> Json:
        """A kubeconfig for a user or service account, all data inline."""
        return kubeconfig(self.name, url=self.url, ca_pem=self.ca_pem, user=user, token=self.token(user))

    def api(self, user: str = ADMIN) -> Api:
        """A client for a user or service account, to enter with `async with`."""
        return Api(self.url, self.ca_pem, self.token(user))

    async def grant(self, user: str, rules: Sequence[Json]) -> None:
        """Let a user do exactly this, in all namespaces; return when it is in force."""
        is_account = user in self._account_tokens
        subject = access.service_account_subject(user) if is_account else access.user_subject(user)
        async with self.api(user) as client:
            await access.grant(self.admin, client, f"tests:{user}", subject, rules)

    async def service_account(self, name: str, rules: Sequence[Json]) -> str:
        """Add a user that is a service account, whose token can be revoked while all runs; return the token."""
        self._account_tokens[name] = await access.create_service_account(self.admin, name)
        await self.grant(name, rules)
        return self.token(name)

    async def revoke(self, user: str) -> None:
        """Make a token worthless; return when it is refused with 401.

        A service account's: at run time, within 10 s, and open watches go on. A static user's: by a restart of the
        API server, which reads its token file only then; open watches end.
        """
        async with self.api(user) as client:
            if user in self._account_tokens:
                await access.revoke_service_account(self.admin, client, user)
                del self._account_tokens[user]
            else:
                del self._static_tokens[user]
                await self._read_static_tokens()

    @abstractmethod
    async def kill_apiserver(self) -> None:
        """Kill the API server: connections break, new ones are refused. The data stay."""

    @abstractmethod
    async def start_apiserver(self) -> None:
        """Start it again, at the same address with the same data; return when it is ready."""

    async def restart_apiserver(self) -> None:
        """Kill it and start it again: some seconds without an API server."""
        await self.kill_apiserver()
        await self.start_apiserver()

    @abstractmethod
    async def pause_apiserver(self) -> None:
        """Freeze it: connections stay open and are accepted, and nothing is ever answered."""

    @abstractmethod
    async def resume_apiserver(self) -> None:
        """Let it go on after `pause_apiserver`."""

    @abstractmethod
    async def compact(self) -> None:
        """Make every older resourceVersion answer 410."""

    @abstractmethod
    async def _start(self) -> None:
        """Start everything and set `_admin`; what is to be undone goes on `_stack`."""

    @abstractmethod
    async def _read_static_tokens(self) -> None:
        """Make the cluster know only `_static_tokens`."""

    async def _stop(self) -> None:
        self._admin = None
        with anyio.CancelScope(shield=True):  # each step bounds its own time
            await self._stack.aclose()


class ClusterFactory(Protocol):
    """Makes clusters that are not started yet; see `ControlPlane` for the arguments."""

    def __call__(
        self,
        name: str,
        *,
        controller_manager: bool = False,
        users: Mapping[str, Sequence[Json]] = ...,
        crds: Sequence[Json] = (),
    ) -> Cluster:
        """Return a cluster to enter with `async with`."""


@asynccontextmanager
async def together(*clusters: Cluster) -> AsyncIterator[None]:
    """Start several clusters at the same time, and end them all."""
    async with AsyncExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            for cluster in clusters:
                tasks.start_soon(stack.enter_async_context, cluster)
        yield
