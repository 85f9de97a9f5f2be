"""One real control plane of child processes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs

from multikueue.core.model.names import Json
from tests.controlplane import binaries
from tests.controlplane.apiserver import ApiServer
from tests.controlplane.binaries import Binaries
from tests.controlplane.controllers import ControllerManager
from tests.controlplane.crds import establish
from tests.controlplane.credentials import ADMIN, CONTROLLER_MANAGER, Credentials, write_kubeconfig
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.etcd import Etcd
from tests.controlplane.interface import Cluster
from tests.controlplane.processes import ChildProcess


@attrs.define(eq=False)
class ControlPlane(Cluster):
    """etcd, kube-apiserver and, when asked for, kube-controller-manager; all its data go away with it.

    Args:
        name: names the kubeconfig's context and the folder.
        controller_manager: whether Jobs make pods and owners' deletion deletes dependents.
        users: static-token users and the rules of each one's ClusterRole.
        crds: applied before the controller manager starts. The garbage collector looks for new kinds only every 30 s,
            so objects of a kind that is applied later are not collected at once.
        watch_cache: False makes every list and watch read etcd (see `compact`).
        apiserver_flags: further flags of the API server.
        binaries: other binaries than those that are found.

    Raises:
        BinariesMissing: on entering, when there is nothing to run.
    """

    controller_manager: bool = attrs.field(default=False, kw_only=True)
    users: Mapping[str, Sequence[Json]] = attrs.field(factory=dict, kw_only=True, repr=False)
    crds: Sequence[Json] = attrs.field(default=(), kw_only=True, repr=False)
    watch_cache: bool = attrs.field(default=True, kw_only=True)
    apiserver_flags: Sequence[str] = attrs.field(default=(), kw_only=True, repr=False)
    binaries: Binaries | None = attrs.field(default=None, kw_only=True, repr=False)
    _running: _Running | None = attrs.field(default=None, init=False, repr=False)

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
        pids = {"apiserver": self._parts.apiserver.process.pid, "etcd": self._parts.etcd.process.pid}
        return {name: pid for name, pid in pids.items() if pid is not None}

    async def kill_apiserver(self) -> None:
        """Kill the API server: connections break, new ones are refused. etcd and its data stay."""
        await self._parts.apiserver.process.kill()

    async def start_apiserver(self) -> None:
        """Start it again, on the same port with the same data; return when it is ready."""
        await self._parts.apiserver.start()

    async def pause_apiserver(self) -> None:
        """Freeze it: connections stay open and are accepted, and nothing is ever answered."""
        await self._parts.apiserver.process.pause()

    async def resume_apiserver(self) -> None:
        """Let it go on after `pause_apiserver`."""
        self._parts.apiserver.process.resume()

    @asynccontextmanager
    async def controllers(self, *flags: str) -> AsyncIterator[None]:
        """kube-controller-manager with these flags while the context lasts, beside none of the plane's own.

        Some controllers look around every 20 s or more, and at their start: what is there by then waits for no round.

        Args:
            flags: further ones; `--controllers=NAME` adds one to those that run.
        """
        process = await self._start_controllers((self.binaries or binaries.find()).controllers_or_raise(), flags)
        try:
            yield
        finally:
            await process.kill()

    async def compact(self) -> None:
        """Make every older resourceVersion answer 410.

        etcd forgets its history. That alone changes nothing for a watch or a list that the API server can serve from
        its watch cache, which keeps the last events of each kind by itself. So it is restarted (open watches end), and
        its new cache begins at the present: later than anything that was ever seen of the old one, since etcd moves
        on while no API server runs. With `watch_cache=False` there is no restart: open watches live, and every
        request from an old resourceVersion gets 410 at once.
        """
        if not self.watch_cache:
            await self._parts.etcd.compact()
            return
        await self.kill_apiserver()
        await self._parts.etcd.compact()
        await self.start_apiserver()

    @property
    def _parts(self) -> _Running:
        if self._running is None:
            raise ControlPlaneError(f"{self.name} does not run: enter it with `async with`.")
        return self._running

    async def _start(self) -> None:
        chosen = self.binaries or binaries.find()
        manager = chosen.controllers_or_raise() if self.controller_manager else None
        folder = Path(tempfile.mkdtemp(prefix=f"controlplane-{self.name}-"))
        self._stack.callback(self._remove, folder)
        keys = Credentials(folder)
        self._static_tokens = keys.make(list(self.users))
        etcd = Etcd(chosen.etcd, folder, self._process("etcd", folder))
        process = self._process("kube-apiserver", folder)
        apiserver = ApiServer(
            chosen.apiserver, folder, keys, etcd.url, process, watch_cache=self.watch_cache, flags=self.apiserver_flags
        )
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

    async def _start_controllers(self, binary: Path, flags: Sequence[str] = ()) -> ChildProcess:
        config = write_kubeconfig(self.folder / "controllers.kubeconfig", self.kubeconfig(CONTROLLER_MANAGER))
        process = self._process("kube-controller-manager", self.folder)
        await ControllerManager(binary, self._parts.credentials, config, process, tuple(flags)).start(self.admin)
        return process

    async def _read_static_tokens(self) -> None:
        self._parts.credentials.write_tokens(self._static_tokens)
        await self.restart_apiserver()

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
