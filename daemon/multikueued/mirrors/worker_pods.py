"""The pods of runs on all workers: one watch per worker that is connected.

It selects the label that a worker's Kueue (0.18 and later) puts on pods of what any MultiKueue has sent it. So pods of
the worker's own users are not read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.shape import pod_flaw
from multikueue.kube import AnswerLimits
from multikueue.kube.informers.informer import Handler, Informer
from multikueue.protocols import ApiClient
from multikueue.runtime.parts import PartHost
from multikueue.runtime.workers.informers import WorkerInformers
from multikueued.mirrors.mirror import RUNS_POD, pod_key, shown_of

TICK: Final = 1.0
"""Seconds between two looks at which workers are connected: reads memory only."""


@attrs.frozen(eq=False)
class _Followed:
    client: ApiClient
    informer: Informer
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)


@attrs.frozen
class Sight:
    """What can be seen of a worker's pods now."""

    pods: Informer | None
    """Its pods; None: they cannot be seen for now."""
    known: WorkerInformers | None
    removed: bool = False
    """Whether the manager does not know the worker any more."""
    lost_since: datetime | None = None
    """Since when it is out of reach."""


@attrs.define(eq=False)
class WorkerPods:
    """Keeps the pods of runs on workers."""

    host: PartHost
    changed: Handler
    """Called with the `pod_key` of a pod that has changed."""
    limits: AnswerLimits
    _followed: dict[str, _Followed] = attrs.field(factory=dict, init=False)

    async def run(self) -> None:
        """Follow those that are connected until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._follow(tasks)
                await anyio.sleep(TICK)

    def sight(self, worker: str) -> Sight:
        """What can be seen of a worker."""
        if self.host.manager.clusters.get(ObjectKey("", worker)) is None:
            return Sight(None, None, removed=True)
        cluster, followed = self.host.workers.get(worker), self._followed.get(worker)
        if cluster is None:
            return Sight(None, None)
        if not cluster.connection.connected or cluster.known is None:
            return Sight(None, None, lost_since=cluster.connection.lost_since)
        complete = followed is not None and followed.client is cluster.known.client and followed.informer.status.synced
        complete = complete and cluster.known.have_read(None)
        return Sight(followed.informer if followed is not None and complete else None, cluster.known)

    def keys(self) -> list[ObjectKey]:
        """The keys of all pods that are seen."""
        return [
            pod_key(name, ObjectKey.of(pod))
            for name, followed in self._followed.items()
            for pod in followed.informer.values()
        ]

    def _follow(self, tasks: anyio.abc.TaskGroup) -> None:
        connected = {str(worker.name): worker.usable for worker in self.host.workers if worker.connection.connected}
        for name in [*self._followed]:
            known = connected.get(name)
            gone = self.host.workers.get(name) is None
            if gone or (known is not None and known.client is not self._followed[name].client):
                self._followed.pop(name).scope.cancel()
        for name, known in connected.items():
            if known is not None and name not in self._followed:
                self._followed[name] = followed = self._made(name, known.client)
                tasks.start_soon(self._keep, followed)

    def _made(self, name: str, client: ApiClient) -> _Followed:
        def tell(key: ObjectKey, old: Json | None, new: Json | None) -> None:
            self.changed(pod_key(name, key), old, new)

        informer = Informer(
            client,
            POD,
            label_selector=f"{RUNS_POD}=true",
            transform=shown_of,
            flaw=pod_flaw,
            keeps_unreadable=True,
            limits=self.limits,
            on_change=tell,
            fraction=self.host.process.fraction,
        )
        return _Followed(client, informer)

    async def _keep(self, followed: _Followed) -> None:
        with followed.scope:
            await followed.informer.run()
