"""Whether a worker serves a job's kind and could ever have quota for it: what must hold before a job is moved there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import Final

import attrs

from multikueue import JobKind
from multikueue.core.config.own_queues import unfit
from multikueue.core.config.quota import cohort_of
from multikueue.core.dispatchers.dispatcher import Candidate
from multikueue.core.dispatchers.reasons import Why
from multikueue.core.dispatchers.scored import job_annotations, kueue_objects
from multikueue.core.dispatchers.scored.filters import FilteredWorkload, obstacle
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of
from multikueue.core.model.quantities import thousandths
from multikueue.core.model.second_names import hold_of, second_name
from multikueue.core.model.worker_names import WorkerNames
from multikueue.core.model.workloads import cluster_name
from multikueue.errors import ApiError, Forbidden, KubeconfigError
from multikueue.kube import KubeClient
from multikueue.protocols import read
from multikueue.runtime.loop import utc_now
from multikueued.clusters import NoAccess, access_to
from multikueued.reports.answers import cluster_state
from multikueued.reports.worker_names import names_by
from multikueued.workers.places import ManagerAccess

UNLIMITED: Final = float("inf")


@attrs.frozen
class QueuesOnWorker:
    """The queues of a worker."""

    local: Mapping[ObjectKey, str]
    """The ClusterQueue of each LocalQueue."""
    cluster: Mapping[str, Json]

    @classmethod
    def of(cls, local: Iterable[Json], cluster: Iterable[Json]) -> QueuesOnWorker:
        """From its LocalQueues and ClusterQueues."""
        leads = {ObjectKey.of(one): str(dig(one, "spec", "clusterQueue")) for one in local}
        return cls(leads, {name_of(one): one for one in cluster})


@attrs.frozen
class Mismatch:
    """Why a worker could never admit a Workload."""

    cause: Why
    why: str
    about: Mapping[str, str] = MappingProxyType({})
    """What remedies fill in."""

    def __str__(self) -> str:
        return self.why


def local_queue_of(workload: Json) -> ObjectKey:
    """The LocalQueue of a Workload on the manager."""
    return ObjectKey(ObjectKey.of(workload).namespace, str(dig(workload, "spec", "queueName") or ""))


def quota_mismatch(workload: Json, queues: QueuesOnWorker, names: WorkerNames) -> Mismatch | None:
    """Why a worker could never admit a Workload, by what the manager reserved for it; None: it could.

    It is a necessary condition only: of a cohort no limit is known but the queue's own `borrowingLimit`. `names` is how
    the worker calls namespaces and queues.
    """
    here = local_queue_of(workload)
    if why := names.why_none(here.namespace):
        return Mismatch(Why.NO_NAMESPACE, why)
    key = names.local_queue(here)
    if key not in queues.local:
        return Mismatch(Why.NO_LOCAL_QUEUE, f'LocalQueue "{key}" does not exist', {"missing": key.name})
    leads = queues.local[key]
    if flaw := queue_flaw(queues, leads):
        return Mismatch(Why.QUEUE_INACTIVE, f'ClusterQueue "{leads}" {flaw}', {"kind": "ClusterQueue", "name": leads})
    limits = dict(_limits(queues.cluster[leads]))
    assigned = dig(workload, "status", "admission", "podSetAssignments") or []
    for entry in assigned:
        for resource, amount in (entry.get("resourceUsage") or {}).items():
            if resource not in limits and resource == "pods":
                continue  # counted only where a queue covers it
            if resource not in limits:
                return Mismatch(Why.NEVER_FITS, f"it has no quota for {resource}", {"resource": resource})
            wanted, most = thousandths(amount), max(limits[resource])
            if wanted > most:
                why = f"insufficient quota for {resource} ({wanted / 1000:g} > {most / 1000:g})"
                return Mismatch(Why.NEVER_FITS, why, {"resource": resource})
    return None


def queue_flaw(queues: QueuesOnWorker, name: str) -> str:
    """Why a ClusterQueue of a worker takes no jobs, with the words of its condition; empty: it does."""
    queue = queues.cluster.get(name)
    if queue is None:
        return "does not exist"
    if dig(queue, "spec", "stopPolicy") not in (None, "None"):
        return "is stopped"
    active = condition(queue, "Active") or {}
    words = ": ".join(str(active[field]) for field in ("reason", "message") if active.get(field))
    return f"is not active ({words})" if active.get("status") == "False" else ""


def queues_mismatch(workload: Json, cluster: Json, queues: QueuesOnWorker, ours: Collection[str]) -> str:
    """Why a job could never run on a worker by its queues, as it calls them; empty: it could.

    Args:
        workload: the manager's.
        cluster: the MultiKueueCluster of the worker. It may be the manager itself.
        queues: those that are there.
        ours: the names of our AdmissionChecks.
    """
    names = names_by(cluster)
    if (found := quota_mismatch(workload, queues, names)) is not None:
        return str(found)
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


def _limits(queue: Json) -> Iterator[tuple[str, list[float]]]:
    """What a ClusterQueue could give of each resource, by flavor, in thousandths."""
    found: dict[str, list[float]] = {}
    borrows = bool(cohort_of(queue))
    for group in dig(queue, "spec", "resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            for entry in flavor.get("resources") or []:
                nominal, more = thousandths(entry.get("nominalQuota") or 0), entry.get("borrowingLimit")
                limit = UNLIMITED if borrows and more is None else nominal + (thousandths(more) if borrows else 0)
                found.setdefault(entry["name"], []).append(limit)
    yield from found.items()


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
        if cluster_name(workload) in cluster_state(cluster).same_as:
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
        if hold := hold_of(cluster):
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
        self._queues[worker] = found = QueuesOnWorker.of(local, cluster)
        return found
