"""The real servers of a fleet: a manager and two workers, and who may do what on them.

They are started once for all tests: that takes 8 s. Before each test they are made as they were then
(`tests.integration.clearing`). What runs against them (`tests.integration.fleet`) is started by each test, in the
test's own task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs
import orjson

from multikueue.core.model.names import Json
from multikueue.kube import ClusterConfig, parse_worker_kubeconfig
from tests.controlplane.crds import read
from tests.controlplane.interface import Cluster, ClusterFactory, together
from tests.data.files import KUEUES_CRDS
from tests.integration.permissions import WORKER_RULES, install_chart_permissions

WORKER_USER = "multikueue"


@attrs.frozen
class Planes:
    """Running control planes."""

    manager: Cluster
    workers: Mapping[str, Cluster]
    daemon_kubeconfig: Json = attrs.field(repr=False)
    """The daemon's own, for the manager: it may do what the chart grants."""

    @property
    def all(self) -> list[Cluster]:
        """The manager first."""
        return [self.manager, *self.workers.values()]

    def worker_kubeconfigs(self) -> dict[str, Json]:
        """What the Secrets on the manager hold at first."""
        return {name: worker.kubeconfig(WORKER_USER) for name, worker in self.workers.items()}


def kueue_crds() -> list[Json]:
    """Kueue's own definitions."""
    return read(KUEUES_CRDS)


def connection(kubeconfig: Json) -> ClusterConfig:
    """A kubeconfig as our client takes it."""
    return parse_worker_kubeconfig(orjson.dumps(kubeconfig))


@asynccontextmanager
async def started(clusters: ClusterFactory, more: Sequence[Json] = ()) -> AsyncIterator[Planes]:
    """Start a manager and two workers with controllers, Kueue's definitions and more, and users with few rights."""
    crds = [*kueue_crds(), *more]
    manager, *workers = (
        clusters(name, controller_manager=True, crds=crds) for name in ("manager", "worker1", "worker2")
    )
    async with together(manager, *workers):
        for worker in workers:
            await worker.service_account(WORKER_USER, WORKER_RULES)
        daemon = await install_chart_permissions(manager)
        yield Planes(manager, {worker.name: worker for worker in workers}, daemon)
