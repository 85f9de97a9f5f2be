"""What is remembered of workers that are gone: enough, and not for ever."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import NoReturn

import anyio
import pytest

from multikueue.adapters import AdapterRegistry
from multikueue.core.model.names import ClusterName
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.workers.cluster_identity import ManagerIdentity
from multikueue.runtime.workers.informers import WorkerSettings
from multikueue.runtime.workers.pool import REMOVED, WorkerPool
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import now, server

pytestmark = pytest.mark.looptime


def _never(_name: ClusterName, _config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
    raise AssertionError("no worker has a configuration")


def _no_event(*_: object) -> NoReturn:
    raise AssertionError("nothing is read")


async def test_since_when_removed_workers_are_lost_is_remembered_of_the_latest() -> None:
    """Names that never come back were kept for as long as the process ran. For others it is rather too late a time:
    they are waited for a little longer, and never less."""
    settings = WorkerSettings(
        AdapterRegistry(()),
        "us",
        ManagerIdentity(DirectClient(server("manager"))),
        on_workload=_no_event,
        on_pods_left=_no_event,
        on_job=_no_event,
        on_queue=_no_event,
        fraction=lambda: 0.0,
    )
    pool = WorkerPool(_never, settings, now, lambda _worker, _known: None, lambda _worker: None)
    async with anyio.create_task_group() as tasks:
        await tasks.start(pool.run)
        began = now()
        for number in range(3 * REMOVED):
            name = ClusterName(f"worker-{number}")
            pool.follow_queues(name)
            pool.clusters.refuse(name, "BadKubeConfig", "no kubeconfig")
            await anyio.sleep(10.0)
            pool.clusters.forget(name)
        tasks.cancel_scope.cancel()

    assert len(pool._removed) == REMOVED
    assert pool._with_queues == set()
    assert pool.lost_since(f"worker-{3 * REMOVED - 1}") == began + timedelta(seconds=10 * (3 * REMOVED - 1))
    oldest_known = pool.lost_since(f"worker-{2 * REMOVED}")
    forgotten = pool.lost_since("worker-0")
    assert oldest_known is not None
    assert forgotten is not None
    assert began < forgotten < oldest_known
