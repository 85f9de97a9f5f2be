"""The control planes under load: a third worker, queues with less room than there are Jobs, kubelets, our daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.kube import KubeClient
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import CHECK, connect_workers, set_up_queues
from multikueued.demo.jobs import with_kinds
from tests.controlplane.interface import ClusterFactory
from tests.integration.daemon import SETTINGS, Daemon
from tests.integration.permissions import WORKER_RULES
from tests.integration.planes import WORKER_USER, Planes, connection, kueue_crds
from tests.operators.load.plan import PODS, Plan
from tests.operators.load.world import LoadedCluster, World
from tests.operators.playing.kubelet import Kubelet

ROOM: Final = 40
"""Jobs that run at a time on one worker. The manager has room for as many as all its workers."""
_THIRD: Final = "worker3"


@asynccontextmanager
async def with_a_third(planes: Planes, clusters: ClusterFactory) -> AsyncIterator[Planes]:
    """The control planes with one more worker."""
    async with clusters(_THIRD, controller_manager=True, crds=kueue_crds()) as third:
        await third.service_account(WORKER_USER, WORKER_RULES)
        yield attrs.evolve(planes, workers={**planes.workers, _THIRD: third})


@asynccontextmanager
async def loaded(planes: Planes, plans: Sequence[Plan]) -> AsyncIterator[World]:
    """All that is needed to run these Jobs; none is submitted yet."""
    async with AsyncExitStack() as stack:
        clients = {
            plane.name: await stack.enter_async_context(KubeClient(connection(plane.kubeconfig()), name=plane.name))
            for plane in planes.all
        }
        await set_up_queues(clients["manager"], _quota(ROOM * len(planes.workers)), [CHECK])
        for name in planes.workers:
            await set_up_queues(clients[name], _quota(ROOM))
        await connect_workers(clients["manager"], planes.worker_kubeconfigs())
        seen = {plane.name: LoadedCluster(plane, clients[plane.name]) for plane in planes.all}
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        world = World(
            {plan.name: plan for plan in plans},
            seen["manager"],
            {worker: seen[worker] for worker in planes.workers},
            tasks,
        )
        for plane in planes.all:
            name = plane.name
            kubelet = Kubelet(plane, clients[name], fates=partial(world.fate, name), seen=partial(world.see, name))
            await tasks.start(SmallKueue(clients[name], kinds=[BATCH_JOB], events=False).run)
            await tasks.start(kubelet.run)
            await tasks.start(seen[name].run)
        daemon = Daemon(connection(planes.daemon_kubeconfig), tasks, settings=with_kinds(SETTINGS, [BATCH_JOB]))
        daemon.start()
        await daemon.connected()
        yield world


def _quota(jobs: int) -> dict[str, str]:
    return {"cpu": f"{jobs * PODS * 100}m", "memory": f"{jobs * PODS * 16}Mi"}
