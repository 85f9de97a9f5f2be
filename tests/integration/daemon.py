"""Our daemon, in a task of the test: what `multikueue run` does, without the process."""

from __future__ import annotations

from datetime import timedelta

import anyio
import anyio.abc
import attrs

from multikueue.kube import ClusterConfig
from multikueue.runtime.manager import Manager
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import RetentionSettings, ServingSettings, Settings
from tests.controlplane.polling import poll_until

SETTINGS = Settings(
    namespace=KUEUE_NAMESPACE,
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
    retention=RetentionSettings(failed=timedelta(0)),  # tests wait until workers have nothing more
)


@attrs.define(eq=False)
class Daemon:
    """Can be started again after it was stopped. What one knew, the next one has to find out."""

    config: ClusterConfig
    _tasks: anyio.abc.TaskGroup
    settings: Settings = attrs.field(default=SETTINGS, kw_only=True)
    _term: Leadership = attrs.field(init=False)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)
    _stopped: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def start(self) -> None:
        """Start it: it leads as soon as it has the Lease."""
        self._term = Leadership(elected=True)
        self._scope, self._stopped = anyio.CancelScope(), anyio.Event()
        self._tasks.start_soon(self._run, self._term, self._scope, self._stopped)

    async def stop(self) -> None:
        """Break it off wherever it is, and wait until it has let go of the Lease."""
        self._scope.cancel()
        await self._stopped.wait()

    async def connected(self) -> None:
        """Wait until it works and follows all workers it knows. (The conditions may be an earlier one's.)"""

        async def follows() -> bool:
            manager = self._term.manager
            if manager is None or not manager.ready:
                return False
            return len(manager.cluster.clusters) == sum(worker.connection.connected for worker in manager.workers)

        await poll_until(follows, seconds=40, otherwise="the daemon does not follow all workers after 40 s")

    @property
    def manager(self) -> Manager:
        """The library's part of it, while it leads."""
        assert self._term.manager is not None, "the daemon does not lead"
        return self._term.manager

    async def _run(self, term: Leadership, scope: anyio.CancelScope, stopped: anyio.Event) -> None:
        try:
            with scope:
                await work(self.settings, self.config, term)
        finally:
            stopped.set()
