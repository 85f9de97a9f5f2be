"""The daemon under test: started, killed at any await, started again."""

from __future__ import annotations

import random
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import anyio
import anyio.abc
import attrs

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.names import ClusterName
from multikueue.core.snapshot import PlanSettings
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager, ManagerSettings
from tests.simulation.link import Session
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import World

WORKER_LOST_TIMEOUT = timedelta(minutes=3)


@attrs.define(eq=False)
class Daemon:
    """Runs one manager after the other, as a Deployment would."""

    world: World
    restarts: int = 0
    manager: Manager | None = None
    _scope: anyio.CancelScope | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run managers until cancelled."""
        task_status.started()
        while True:
            with anyio.CancelScope() as self._scope:
                self.manager = self._build()
                await self.manager.run()
            self.restarts += 1
            await anyio.sleep(self.world.dice.uniform(0.1, 20.0))  # until the next one has the lease

    def kill(self) -> None:
        """Stop it wherever it is; nothing in memory survives."""
        if self._scope is not None:
            self._scope.cancel()

    def _build(self) -> Manager:
        home = self.world.manager.link
        return Manager(
            home.with_token(home.token),
            AdapterRegistry(BUILTIN),
            ManagerSettings(plan=PlanSettings(worker_lost_timeout=WORKER_LOST_TIMEOUT)),
            self._connect,
            clock=wall_clock(),
            fraction=random.Random(f"daemon/{self.world.seed}/{self.restarts}").random,
        )

    def _connect(self, name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        host = config.server.removeprefix("https://").partition(".")[0]
        del name
        session: Session = self.world.workers[host].link.with_token(config.token)
        return session
