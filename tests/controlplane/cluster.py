"""One real control plane of child processes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import attrs

from multikueue.core.model.names import Json
from tests.controlplane import access, binaries
from tests.controlplane.api import Api
from tests.controlplane.apiserver import ApiServer
from tests.controlplane.controllers import ControllerManager
from tests.controlplane.crds import establish
from tests.controlplane.credentials import ADMIN, CONTROLLER_MANAGER, Credentials, kubeconfig, write_kubeconfig
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.etcd import Etcd
from tests.controlplane.processes import ChildProcess


@attrs.define(eq=False)
class Cluster:
    """etcd, kube-apiserver and, when asked for, kube-controller-manager, from `async with` to its end.

    All its data go away with it. It belongs to the event loop that entered it.

    Args:
        name: names the kubeconfig's context and the folder.
        controller_manager: whether Jobs make pods and owners' deletion deletes dependents.
        users: static-token users and the rules of each one's ClusterRole.
        crds: applied before the controller manager starts. The garbage collector looks for new kinds only every 30 s,
            so objects of a kind that is applied later are not collected at once.
        apiserver_flags: further flags of the API server.

    Raises:
        BinariesMissing: on entering, when there is nothing to run.
    """

    name: str
    controller_manager: bool = attrs.field(default=False, kw_only=True)
    users: Mapping[str, Sequence[Json]] = attrs.field(factory=dict, kw_only=True, repr=False)
    crds: Sequence[Json] = attrs.field(default=(), kw_only=True, repr=False)
    apiserver_flags: Sequence[str] = attrs.field(default=(), kw_only=True, repr=False)
    _static_tokens: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)
    _account_tokens: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)
    _stack: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False, repr=False)
    _admin: Api | None = attrs.field(default=None, init=False, repr=False)
    _running: _Running | None = attrs.field(default=None, init=False, repr=False)

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
    def url(self) -> str:
        """The API server's address: the same after a restart."""
        return self._parts.apiserver.url

    @property
    def ca_pem(self) -> str:
        """The certificate authority to trust: the same after a restart."""
        return self._parts.credentials.ca_pem

    @property
    def folder(self) -> Path:
        """Holds `COMPONENT.log` of each component, until the end."""
        return self._parts.credentials.folder

    def pids(self) -> dict[str, int]:
        """The ids of the API server's and etcd's processes, while they run."""
        found = {"apiserver": self._parts.apiserver.process.pid, "etcd": self._parts.etcd.process.pid}
        return {name: pid for name, pid in found.items() if pid is not None}

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

    async def revoke(self, account: str) -> None:
        """Make a service account's token worthless; return when it is refused with 401, within 10 s. Watches go on."""
        async with self.api(account) as client:
            await access.revoke_service_account(self.admin, client, account)
        del self._account_tokens[account]

    async def kill_apiserver(self) -> None:
        """Kill the API server: connections break, new ones are refused. etcd and its data stay."""
        await self._parts.apiserver.process.kill()

    async def start_apiserver(self) -> None:
        """Start it again, on the same port with the same data; return when it is ready."""
        await self._parts.apiserver.start()

    async def restart_apiserver(self) -> None:
        """Kill it and start it again: some seconds without an API server."""
        await self.kill_apiserver()
        await self.start_apiserver()

    async def pause_apiserver(self) -> None:
        """Freeze it: connections stay open and are accepted, and nothing is ever answered."""
        self._parts.apiserver.process.pause()

    async def resume_apiserver(self) -> None:
        """Let it go on after `pause_apiserver`."""
        self._parts.apiserver.process.resume()

    async def compact(self) -> None:
        """Make every older resourceVersion answer 410.

        etcd forgets its history. That alone changes nothing for a watch or a list that the API server can serve from
        its watch cache, which keeps the last events of each kind by itself. So it is restarted (open watches end), and
        its new cache begins at the present: later than anything that was ever seen of the old one, since etcd moves
        on while no API server runs.
        """
        await self.kill_apiserver()
        await self._parts.etcd.compact()
        await self.start_apiserver()

    @property
    def _parts(self) -> _Running:
        if self._running is None:
            raise ControlPlaneError(f"{self.name} does not run: enter it with `async with`.")
        return self._running

    async def _start(self) -> None:
        found = binaries.find()
        manager = found.controllers_or_raise() if self.controller_manager else None
        folder = Path(tempfile.mkdtemp(prefix=f"controlplane-{self.name}-"))
        self._stack.callback(self._remove, folder)
        keys = Credentials(folder)
        self._static_tokens = keys.make(list(self.users))
        etcd = Etcd(found.etcd, folder, self._process("etcd", folder))
        process = self._process("kube-apiserver", folder)
        apiserver = ApiServer(found.apiserver, folder, keys, etcd.url, process, flags=self.apiserver_flags)
        await etcd.start()
        await apiserver.start()
        self._running = _Running(keys, etcd, apiserver)
        self._admin = await self._stack.enter_async_context(self.api(ADMIN))
        await establish(self._admin, self.crds)
        async with anyio.create_task_group() as tasks:
            for user, rules in self.users.items():
                tasks.start_soon(self.grant, user, rules)
            if manager is not None:
                tasks.start_soon(self._start_controllers, manager)

    async def _start_controllers(self, binary: Path) -> None:
        config = write_kubeconfig(self.folder / "controllers.kubeconfig", self.kubeconfig(CONTROLLER_MANAGER))
        process = self._process("kube-controller-manager", self.folder)
        await ControllerManager(binary, self._parts.credentials, config, process).start(self.admin)

    async def _stop(self) -> None:
        self._admin = None
        with anyio.CancelScope(shield=True):  # each step bounds its own time
            await self._stack.aclose()

    def _process(self, component: str, folder: Path) -> ChildProcess:
        process = ChildProcess(f"{component} of {self.name}", folder / f"{component}.log")
        self._stack.push_async_callback(process.kill)
        return process

    def _remove(self, folder: Path) -> None:
        self._running = None
        shutil.rmtree(folder, ignore_errors=True)


@attrs.frozen
class _Running:
    credentials: Credentials
    etcd: Etcd
    apiserver: ApiServer


@asynccontextmanager
async def together(*clusters: Cluster) -> AsyncIterator[None]:
    """Start several clusters at the same time, and end them all."""
    async with AsyncExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            for cluster in clusters:
                tasks.start_soon(stack.enter_async_context, cluster)
        yield
