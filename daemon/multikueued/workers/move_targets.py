"""Whether a worker serves a job's kind and could ever have quota for it: what must hold before a job is moved there."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

import attrs

from multikueue import JobKind
from multikueue.core.config.own_queues import unfit
from multikueue.core.dispatchers.dispatcher import Candidate
from multikueue.core.dispatchers.scored import job_annotations, kueue_objects
from multikueue.core.dispatchers.scored.filters import FilteredWorkload, obstacle
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, labels_of, name_of
from multikueue.core.model.second_names import second_name, why_nothing_new
from multikueue.core.model.workloads import cluster_name
from multikueue.errors import ApiError, Forbidden, KubeconfigError
from multikueue.kube import KubeClient
from multikueue.protocols import read
from multikueue.runtime.loop import utc_now
from multikueued.clusters import NoAccess, access_to
from multikueued.reports.cluster_answers import cluster_answer
from multikueued.reports.worker_queues import QueuesOnWorker, local_queue_of, quota_mismatch
from multikueued.workers.places import ManagerAccess


def queues_mismatch(workload: Json, cluster: Json, queues: QueuesOnWorker, ours: Collection[str]) -> str:
    """Why a job could never run on a worker by its queues, as it calls them; empty: it could.

    Args:
        workload: the manager's.
        cluster: the MultiKueueCluster of the worker. It may be the manager itself.
        queues: those that are there.
        ours: the names of our AdmissionChecks.
    """
    names = cluster_answer(cluster).names
    if (mismatch := quota_mismatch(workload, queues, names)) is not None:
        return str(mismatch)
    leads = queues.local[names.local_queue(local_queue_of(workload))]
    flaw = unfit(queues.cluster.values(), (), ours).get(leads) if names.of_manager else None
    return f'ClusterQueue "{leads}" cannot hold copies: {flaw}' if flaw else ""


def annotations_mismatch(workload: Json, job: Json | None, cluster: Json) -> str:
    """Why a job's annotations, or a worker's taints and flavors, keep it from there; empty: they do not.

    Args:
        workload: the manager's. A job that goes together with another is where that one is.
        job: its job on the manager.
        cluster: the MultiKueueCluster of the worker.
    """
    company = cluster_name(workload)
    wanted = FilteredWorkload(
        request=None,
        priority=0,
        narrowing=job_annotations.read({**annotations_of(job or {}), **annotations_of(workload)}),
        company=ClusterName(company) if company is not None else None,
        refused=(),
        flavors=kueue_objects.flavors(workload),
    )
    candidate = Candidate(ClusterName(name_of(cluster)), labels_of(cluster), annotations_of(cluster))
    return str(obstacle(candidate, wanted, utc_now()) or "")


@attrs.define
class MoveTargets:
    """The other workers, as this command can see them: with the credentials that the manager holds."""

    manager: ManagerAccess
    stack: AsyncExitStack
    ours: Collection[str] = ()
    """The names of our AdmissionChecks."""
    _seen: dict[str, KubeClient | str] = attrs.field(factory=dict, init=False)
    """By worker: a client, or why there is none."""
    _queues: dict[str, QueuesOnWorker] = attrs.field(factory=dict, init=False)
    _clusters: dict[str, Json] = attrs.field(factory=dict, init=False)

    async def why_not(self, worker: str, workload: Json, job: Json | None, kind: JobKind) -> str:
        """Why a job cannot be moved to a worker; empty: it can."""
        client = self._seen.get(worker) or await self._connected(worker)
        self._seen[worker] = client
        if isinstance(client, str):
            return client
        cluster = self._clusters[worker]
        if cluster_name(workload) in cluster_answer(cluster).same_as:
            return "it is the same cluster"
        if why := annotations_mismatch(workload, job, cluster):
            return why
        try:
            if await client.discover(kind.resource.gvk) is None:
                return f"it does not serve {kind.resource}"
            queues = self._queues.get(worker) or await self._read_queues(worker, client)
            return queues_mismatch(workload, cluster, queues, self.ours)
        except Forbidden:
            return "its queues may not be read with the daemon's credentials (worker add --diagnose grants that)"
        except ApiError as error:
            return str(error)

    async def _connected(self, worker: str) -> KubeClient | str:
        cluster = await read(self.manager.client, MULTIKUEUE_CLUSTER, ObjectKey("", worker))
        if cluster is None:
            return "it has no MultiKueueCluster"
        if hold := why_nothing_new(cluster):
            return f"it is {hold}" if second_name(cluster) is None else hold
        self._clusters[worker] = cluster
        if not is_true(cluster, "Active"):
            return "it is not connected"
        try:
            access = await access_to(self.manager.client, cluster, self.manager.namespace)
            return await self.stack.enter_async_context(KubeClient(access.config, name=worker))
        except (NoAccess, KubeconfigError) as error:
            return str(error)

    async def _read_queues(self, worker: str, client: KubeClient) -> QueuesOnWorker:
        local, cluster = (await client.list(LOCAL_QUEUE)).items, (await client.list(CLUSTER_QUEUE)).items
        self._queues[worker] = queues = QueuesOnWorker.of(local, cluster)
        return queues
