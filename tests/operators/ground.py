"""A ground whose jobs are run by their real controllers: only pods are played."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, controller_of, dig, is_terminating, labels_of, resource_version, uid
from multikueue.kube import KubeClient
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, connect_workers, set_up_queues
from multikueued.demo.jobs import with_kinds
from tests.controlplane.errors import BinariesMissing
from tests.controlplane.interface import Cluster as Plane
from tests.controlplane.provider import report_missing
from tests.integration.daemon import SETTINGS, Daemon
from tests.integration.permissions import WORKER_RULES, grant_daemon
from tests.integration.planes import WORKER_USER, Planes, connection
from tests.integration.view import POD
from tests.kinds.cases import Case
from tests.kinds.ground import Cluster, Ground, of_any_cluster
from tests.operators.controllers import running
from tests.operators.playing.kubelet import Kubelet
from tests.operators.playing.ray_dashboard import RayDashboard
from tests.operators.starts.start import Place
from tests.operators.table import Operator

SERVICE: Final = Resource(GVK("", "v1", "Service"), "services")
SECONDS: Final = 120.0
"""How long what must happen may take: on a machine that does nothing else, a tenth of it."""
QUOTA: Final = {"cpu": "64", "memory": "64Gi"}


@attrs.define(eq=False)
class Recorded(Cluster):
    """A cluster that keeps every version of what it showed."""

    history: list[tuple[Resource, str, Json]] = attrs.field(factory=list, init=False)
    writes_on: dict[Resource, Callable[[Json], bool]] = attrs.field(factory=dict, init=False)
    """Kinds whose controller writes into the status of a job that has ended, and whether a status tells an end."""

    def observe(self, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """See `Cluster`."""
        super().observe(resource, key, old, new)
        if new is not None:
            self.history.append((resource, key.name, clone(new)))

    def showed(self, resource: Resource, name: str, status: Json) -> bool:
        """Whether an object's status was this at last, before it was deleted: a finalizer may have it changed then.

        Where its controller writes on, any status from the first one that tells the end.
        """
        shown, ended = of_any_cluster(status), self.writes_on.get(resource)
        statuses = [of_any_cluster(there) for there in self.statuses(resource, name, alive=True)]
        while ended is not None and statuses[-1:] != [shown] and any(map(ended, statuses[-2:-1])):
            statuses.pop()
        return statuses[-1:] == [shown]

    def pods_of(self, owners: Resource, prefix: str) -> list[int]:
        """How many pods each object of a kind with such a name ever had, until nothing was written to it any more.

        An object that is deleted goes at once, and its controller may make pods for it for as long as it has not heard.
        """
        last: dict[str, int] = {}
        pods: dict[str, tuple[str, int]] = {}
        for kind, name, obj in self.history:
            version = int(resource_version(obj))
            if kind == owners and name.startswith(prefix) and not is_terminating(obj):
                last[uid(obj)] = version
            elif kind == POD and (owner := controller_of(obj)) is not None:
                pods.setdefault(uid(obj), (owner["uid"], version))
        return [sum(of == own and made <= version for of, made in pods.values()) for own, version in last.items()]

    def statuses(self, resource: Resource, name: str, *, alive: bool = False) -> list[Json]:
        """The statuses that an object showed, without repetitions; only those before it was deleted, if asked so."""
        distinct: list[Json] = []
        for kind, own, obj in self.history:
            if alive and is_terminating(obj):
                continue
            if (kind, own) == (resource, name) and (status := obj.get("status") or {}) not in distinct[-1:]:
                distinct.append(status)
        return distinct


@attrs.define(eq=False)
class OperatorsGround(Ground):
    """A ground with kubelets and control planes to break."""

    kubelets: Mapping[str, Kubelet] = attrs.field(kw_only=True)
    planes: Planes = attrs.field(kw_only=True)
    children: tuple[Resource, ...] = attrs.field(default=(JOB, SERVICE), kw_only=True)
    """Kinds that controllers make of a job, beside pods."""

    async def running(self, kind: SandboxKind, name: str) -> str:
        """As every ground, and a pod of it runs there: some controllers say so before."""
        worker = await super().running(kind, name)
        await self.until(lambda: self.running_pods(worker, name), lambda: self.story(kind, name))
        return worker

    @property
    def recorded(self) -> dict[str, Recorded]:
        """All clusters by name."""
        return {cluster.name: cluster for cluster in self.clusters if isinstance(cluster, Recorded)}

    def pods(self, cluster: str, prefix: str) -> list[Json]:
        """The pods of a cluster whose names begin so."""
        held = self.manager if cluster == self.manager.name else self.workers[cluster]
        return [obj for (kind, name), obj in held.now.items() if kind == POD and name.startswith(prefix)]

    def running_pods(self, cluster: str, prefix: str) -> list[Json]:
        """Those of them that run, and are not about to go."""
        return [
            pod
            for pod in self.pods(cluster, prefix)
            if dig(pod, "status", "phase") == "Running" and not is_terminating(pod)
        ]

    def pods_made(self, prefix: str, label: str = "") -> dict[str, int]:
        """How many pods with such names, and with such a label, there ever were, by cluster."""
        counts = {
            cluster.name: sum(
                len(uids)
                for (kind, name), uids in cluster.uids.items()
                if kind == POD and name.startswith(prefix)
                if not label or label in labels_of(cluster.last[kind, name])
            )
            for cluster in self.clusters
        }
        return {name: count for name, count in counts.items() if count}

    def pods_of(self, owners: Resource, prefix: str) -> dict[str, list[int]]:
        """By cluster, see `Recorded.pods_of`."""
        by_cluster = {name: cluster.pods_of(owners, prefix) for name, cluster in self.recorded.items()}
        return {name: counts for name, counts in by_cluster.items() if counts}

    def pods_run(self, prefix: str) -> dict[str, int]:
        """How many pods with such names ever had a node, by cluster: a gated one gets none."""
        counts = {
            cluster.name: len({uid(pod) for pod in self._versions(cluster, prefix) if dig(pod, "spec", "nodeName")})
            for cluster in self.clusters
        }
        return {name: count for name, count in counts.items() if count}

    def _versions(self, cluster: Cluster, prefix: str) -> list[Json]:
        """Every version that a cluster showed of pods with such names."""
        assert isinstance(cluster, Recorded)
        return [pod for kind, name, pod in cluster.history if kind == POD and name.startswith(prefix)]

    async def close_queue(self, worker: str, queue: str) -> None:
        """Take a LocalQueue from a worker: it admits nothing for it any more."""
        await self.workers[worker].client.delete(LOCAL_QUEUE, ObjectKey("default", queue))

    async def hold(self, worker: str, *, on: bool) -> None:
        """Let a worker's queue admit nothing new, or again everything."""
        patch = {"spec": {"stopPolicy": "Hold" if on else "None"}}
        await self.workers[worker].client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)


def _rules(rows: Sequence[Case], verbs: Sequence[str], status_verbs: Sequence[str] = ()) -> list[Json]:
    rules: list[Json] = []
    for case in rows:
        resource = case.adapter.resource
        rules.append({"apiGroups": [resource.gvk.group], "resources": [resource.plural], "verbs": [*verbs]})
        if status_verbs:
            where = f"{resource.plural}/status" if case.kind.status_subresource else resource.plural
            rules.append({"apiGroups": [resource.gvk.group], "resources": [where], "verbs": [*status_verbs]})
    return rules


@asynccontextmanager
async def operators_ground(
    planes: Planes,
    operator: Operator,
    rows: Sequence[Case],
    folder: Path,
    *,
    on: Sequence[str] | None = None,
    instead: Mapping[str, Operator] | None = None,
) -> AsyncIterator[OperatorsGround]:
    """The control planes with a controller, kubelets, a small Kueue each, and our daemon for these kinds.

    Args:
        planes: they serve the controller's kinds.
        operator: the controller.
        rows: its kinds.
        folder: for settings and logs.
        on: where the controller runs; everywhere if not told. Workers without it admit nothing.
        instead: what runs there instead of it, by cluster: another version.
    """
    others = instead or {}
    _require(operator, *others.values())
    await _grant(planes, rows)
    async with AsyncExitStack() as stack:
        clients = {
            plane.name: await stack.enter_async_context(KubeClient(connection(plane.kubeconfig()), name=plane.name))
            for plane in planes.all
        }
        clusters = {name: Recorded(name, client) for name, client in clients.items()}
        ground = OperatorsGround(
            clusters["manager"],
            {name: clusters[name] for name in planes.workers},
            kubelets={plane.name: Kubelet(plane, clients[plane.name]) for plane in planes.all},
            planes=planes,
            seconds=SECONDS,
            children=(JOB, SERVICE, *operator.children),
        )
        await _connect(ground, planes)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        kinds = [case.kind for case in rows]
        await _run_the_rest(tasks, ground, kinds)
        for plane in planes.all:
            if on is None or plane.name in on:
                await _run_controllers(stack, plane, clusters[plane.name], others.get(plane.name, operator), folder)
            elif plane.name in planes.workers:
                await ground.hold(plane.name, on=True)
        daemon = Daemon(connection(planes.daemon_kubeconfig), tasks, settings=with_kinds(SETTINGS, [*kinds, BATCH_JOB]))
        daemon.start()
        await daemon.connected()
        yield ground


async def _run_the_rest(tasks: TaskGroup, ground: OperatorsGround, kinds: Sequence[SandboxKind]) -> None:
    """A small Kueue and kubelets for each cluster, and watches of all that controllers make."""
    for cluster in ground.clusters:
        await tasks.start(SmallKueue(cluster.client, kinds=kinds).run)
        await tasks.start(ground.kubelets[cluster.name].run)
    await tasks.start(ground.follow, [*(kind.resource for kind in kinds), *ground.children, POD, MULTIKUEUE_CLUSTER])


async def _grant(planes: Planes, rows: Sequence[Case]) -> None:
    """Give our daemon the permissions that it needs for these kinds."""
    await grant_daemon(planes.manager, _rules(rows, ("list", "watch"), ("patch",)))
    for worker in planes.workers.values():
        verbs = ("create", "delete", "list", "watch", "patch")
        await worker.grant(WORKER_USER, [*WORKER_RULES, *_rules(rows, verbs)])


async def _run_controllers(
    stack: AsyncExitStack, plane: Plane, cluster: Recorded, operator: Operator, folder: Path
) -> None:
    """Run a controller beside a control plane, and what it needs, until the stack is closed."""
    proxy = await stack.enter_async_context(RayDashboard(cluster).served())
    for needed in (*operator.needs, operator):
        own = folder / plane.name / needed.name
        own.mkdir(parents=True)
        await stack.enter_async_context(running(needed, Place(cluster=plane, folder=own, proxy=proxy)))


def _require(*operators: Operator) -> None:
    """Say so where a controller is not built: the test fails in CI, and is skipped elsewhere."""
    for operator in operators:
        try:
            operator.require()
        except BinariesMissing as error:
            report_missing(f"controller of {', '.join(operator.kinds)}", error)


async def _connect(ground: Ground, planes: Planes) -> None:
    await set_up_queues(ground.manager.client, QUOTA, [CHECK])
    for worker in ground.workers.values():
        await set_up_queues(worker.client, QUOTA)
    await connect_workers(ground.manager.client, planes.worker_kubeconfigs())
