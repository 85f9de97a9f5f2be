"""The manager's objects that reports are made of, and how one leads to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.config.quota import check_names
from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.starts import Waited
from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model import workloads
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import CONTROLLER_NAME, ORIGIN_LABEL
from multikueue.core.model.name_lists import did_you_mean
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of
from multikueue.core.model.worker_names import WorkerNames, origin_namespace
from multikueued.reports.published import Published, published_in
from multikueued.reports.worker_queues import QueuesOnWorker, leads_to, local_queue_of

_CONFIG: Final = "MultiKueueConfig"
_ON_THE_WAY: Final = frozenset((LOCAL_QUEUE, CLUSTER_QUEUE, ADMISSION_CHECK))
"""From a Workload to its check."""


@attrs.frozen(slots=False)  # what is looked up often is kept
class ManagerObjects:
    """All objects of the manager that a report looks at."""

    workloads: tuple[Json, ...] = ()
    checks: tuple[Json, ...] = ()
    """All AdmissionChecks, those of other controllers included."""
    configs: tuple[Json, ...] = ()
    clusters: tuple[Json, ...] = ()
    cluster_queues: tuple[Json, ...] = ()
    local_queues: tuple[Json, ...] = ()
    cohorts: tuple[Json, ...] = ()
    """Those that stand above others; only the doctor looks at them."""
    lease: Json | None = None
    """The daemon's; None if there is none, or if it may not be read."""
    findings: Json | None = None
    """The ConfigMap with what the daemon sees of workers; None if there is none, or if it may not be read."""
    unread: frozenset[Resource] = frozenset()
    """What may not be listed: nothing follows from there being none."""

    @cached_property
    def our_checks(self) -> dict[str, Json]:
        """The AdmissionChecks that stand for MultiKueue: by `controllerName`, or by a MultiKueueConfig as parameters.

        A daemon with a `controllerName` of its own is known by the latter. Where none may be read, any that a Workload
        has is taken for one.
        """
        if ADMISSION_CHECK in self.unread:
            named = (str(check.get("name")) for workload in self.workloads for check in workloads.checks(workload))
            return {name: {"metadata": {"name": name}} for name in named}
        return {name_of(check): check for check in self.checks if _is_ours(check)}

    @cached_property
    def checks_by_name(self) -> dict[str, Json]:
        """The AdmissionChecks, those of other controllers included."""
        return _by_name(self.checks)

    @cached_property
    def clusters_by_name(self) -> dict[str, Json]:
        """The MultiKueueClusters. Where none may be read, those that Workloads name, as if they were connected."""
        if MULTIKUEUE_CLUSTER in self.unread:
            named = (workloads.cluster_name(workload) for workload in self.workloads)
            asked = (name for workload in self.workloads for name in workloads.nominated(workload))
            active = {"conditions": [{"type": "Active", "status": "True"}]}
            return {name: {"metadata": {"name": name}, "status": active} for name in (*named, *asked) if name}
        return _by_name(self.clusters)

    def names_on(self, worker: str) -> WorkerNames:
        """How a worker calls namespaces and queues."""
        return names_by(self.clusters_by_name.get(worker) or {})

    def is_manager(self, worker: str) -> bool:
        """Whether the daemon says that a worker is the manager itself."""
        return self.names_on(worker).of_manager

    @cached_property
    def waited(self) -> tuple[tuple[Json, Waited], ...]:
        """The Workloads that have waited for workers, or do."""
        known = ((workload, kueue_objects.waited(workload)) for workload in self.workloads)
        return tuple((workload, job) for workload, job in known if job is not None)

    @cached_property
    def last_started(self) -> dict[str, datetime]:
        """When the last of these that has started got its quota, by ClusterQueue."""
        latest: dict[str, datetime] = {}
        for _, job in self.waited:
            if job.started is not None:
                latest[job.queue] = max(job.reserved, latest.get(job.queue, job.reserved))
        return latest

    @cached_property
    def queues_by_name(self) -> dict[str, Json]:
        """The ClusterQueues."""
        return _by_name(self.cluster_queues)

    @cached_property
    def local_queues_by_key(self) -> dict[ObjectKey, Json]:
        """The LocalQueues."""
        return {ObjectKey.of(queue): queue for queue in self.local_queues}

    @cached_property
    def published(self) -> dict[str, Published]:
        """What the daemon sees of workers, by worker."""
        return published_in(self.findings)

    def queues_seen(self, worker: str) -> tuple[QueuesOnWorker, datetime] | None:
        """A worker's queues as the daemon saw them, and when; None: it did not, or that may not be read."""
        published = self.published.get(worker)
        if published is None or published.facts.queues is None or published.quota_at is None:
            return None
        return published.facts.queues, published.quota_at

    @cached_property
    def local_queues_for(self) -> dict[str, list[ObjectKey]]:
        """The LocalQueues that lead to each worker."""
        leading: dict[str, list[ObjectKey]] = {}
        for key, local in sorted(self.local_queues_by_key.items()):
            queue = self.queues_by_name.get(leads_to(local))
            for worker in self.workers_of(self.check_of_queue(queue or {}) or ""):
                leading.setdefault(worker, []).append(key)
        return leading

    @cached_property
    def dispatched(self) -> tuple[Json, ...]:
        """The Workloads that MultiKueue looks after, or will once they have quota."""
        return tuple(filter(self.is_dispatched, self.workloads))

    @cached_property
    def jobs_by_worker(self) -> dict[str, list[Json]]:
        """The Workloads that have a worker and have not ended, by its name, whether there is such a worker or not."""
        by_worker: dict[str, list[Json]] = {}
        for workload in self.dispatched:
            worker = workloads.cluster_name(workload)
            if worker is not None and not workloads.is_finished(workload):
                by_worker.setdefault(worker, []).append(workload)
        return by_worker

    def is_dispatched(self, workload: Json) -> bool:
        """Whether MultiKueue looks after a Workload, or may: what its queue says may not be read, or it names none. A
        copy on the manager itself belongs to its original."""
        reason = self.check_of(workload) or self.may_be_checked(workload) or self.leads_nowhere(workload)
        return bool(reason) and not self.is_own_copy(workload)

    def may_be_checked(self, workload: Json) -> bool:
        """Whether the ClusterQueue of a Workload has a check of ours, or one that does not exist. Where that may not be
        read: unless Kueue has let it run without any.
        """
        if self.unread & _ON_THE_WAY:
            return not is_admitted_unchecked(workload)
        return bool(self.checks_for(workload)) or any(
            name not in self.checks_by_name for name in check_names(self.cluster_queue_of(workload) or {})
        )

    def has_no_queue(self, workload: Json) -> bool:
        """Whether the LocalQueue that a Workload names does not exist, and nothing else gave it quota."""
        known = LOCAL_QUEUE in self.unread or self.local_queue_of(workload) is not None
        return bool(queue_name(workload)) and not known and not workloads.cluster_queue(workload)

    def leads_nowhere(self, workload: Json) -> bool:
        """Whether a Workload has no queue, or one whose ClusterQueue does not exist."""
        if self.has_no_queue(workload):
            return True
        read = CLUSTER_QUEUE not in self.unread and self.local_queue_of(workload) is not None
        return read and self.cluster_queue_of(workload) is None

    def is_own_copy(self, workload: Json) -> bool:
        """Whether a Workload says that it is a copy, and is where the manager, as a worker, has those."""
        key, came_from = ObjectKey.of(workload), origin_namespace(workload)
        if came_from == key.namespace or ORIGIN_LABEL not in labels_of(workload):
            return False
        own = (name for name in self.clusters_by_name if self.is_manager(name))
        return any(self.names_on(name).namespace(came_from) == key.namespace for name in own)

    def config_of(self, check: str) -> Json | None:
        """The MultiKueueConfig that an AdmissionCheck refers to."""
        wanted = config_name(self.our_checks.get(check, {}))
        return next((config for config in self.configs if wanted and name_of(config) == wanted), None)

    def workers_of(self, check: str) -> list[str]:
        """The names that the MultiKueueConfig of a check lists, known or not."""
        return clusters(self.config_of(check) or {})

    def check_of(self, workload: Json) -> str | None:
        """The check of ours that a Workload has."""
        return next(
            (str(check["name"]) for check in workloads.checks(workload) if check.get("name") in self.our_checks), None
        )

    def check_for(self, workload: Json) -> str | None:
        """The first check of ours that a Workload has, or will get from its ClusterQueue."""
        return next(iter(self.checks_for(workload)), None)

    def checks_for(self, workload: Json) -> list[str]:
        """All checks of ours that a Workload has, or will get from its ClusterQueue."""
        own = (str(check.get("name")) for check in workloads.checks(workload) if check.get("name") in self.our_checks)
        return list(dict.fromkeys((*own, *self.checks_of_queue(self.cluster_queue_of(workload) or {}))))

    def local_queue_of(self, workload: Json) -> Json | None:
        """The LocalQueue that a Workload names."""
        return self.local_queues_by_key.get(local_queue_of(workload))

    def cluster_queue_of(self, workload: Json) -> Json | None:
        """The ClusterQueue that gave it quota or, before that, the one behind its LocalQueue."""
        return self.queues_by_name.get(self.cluster_queue_name(workload))

    def cluster_queue_name(self, workload: Json) -> str:
        """Its name, also where it may not be read; empty: no LocalQueue tells it."""
        queue = self.local_queue_of(workload) or {}
        return workloads.cluster_queue(workload) or leads_to(queue)

    def check_of_queue(self, cluster_queue: Json) -> str | None:
        """The first check of ours on a ClusterQueue."""
        return next(self.checks_of_queue(cluster_queue), None)

    def checks_of_queue(self, cluster_queue: Json) -> Iterator[str]:
        """All checks of ours on a ClusterQueue: one of them holds its jobs up as well as the other."""
        return (name for name in check_names(cluster_queue) if name in self.our_checks)


def is_admitted_unchecked(workload: Json) -> bool:
    """Whether Kueue lets a job run here without any check: so its ClusterQueue had none."""
    placed = workloads.cluster_name(workload) is not None or workloads.noted_worker(workload)
    return workloads.is_admitted(workload) and not (workloads.checks(workload) or placed)


def queue_name(workload: Json) -> str:
    """The LocalQueue that a Workload names."""
    return local_queue_of(workload).name


def _is_ours(check: Json) -> bool:
    spec = check.get("spec") or {}
    return spec.get("controllerName") == CONTROLLER_NAME or dig(spec, "parameters", "kind") == _CONFIG


def _by_name(objects: Iterable[Json]) -> dict[str, Json]:
    return {name_of(each): each for each in objects}


def similar(name: str, known: Iterable[str] | Mapping[str, object]) -> str:
    """` (did you mean "x"?)` for a name that looks like a known one; empty if none does."""
    guess = did_you_mean(name, known)
    return f" ({guess})" if guess else ""


def names_by(cluster: Json) -> WorkerNames:
    """How a worker calls namespaces and queues, by its MultiKueueCluster alone."""
    facts = connection_facts(cluster)
    return WorkerNames.of(annotations_of(cluster), of_manager=facts is not None and facts.is_manager is True)
