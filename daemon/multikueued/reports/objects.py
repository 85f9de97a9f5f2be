"""The manager's objects that reports are made of, and what a Workload leads to among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.config.quota import check_names
from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.starts import Waited
from multikueue.core.inventory.ownership import is_placement_check
from multikueue.core.model import workloads
from multikueue.core.model.check_message import Message
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.earlier_run_facts import EarlierRun, earlier_runs_in
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import CONTROLLER_NAME, ORIGIN_LABEL
from multikueue.core.model.name_lists import suggestion
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, name_of
from multikueue.core.model.worker_names import WorkerNames, origin_namespace
from multikueue.core.model.workloads import CheckState
from multikueued.reports.cluster_answers import NO_CLUSTER, ClusterAnswer, cluster_answer
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
    daemon_namespace: str = ""
    """Where the daemon has its Lease, `findings` and Secrets; empty: nobody asks for that."""

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

    @cached_property
    def cluster_answers(self) -> dict[str, ClusterAnswer]:
        """What these say."""
        return {name: self.said_of(name) for name in self.clusters_by_name}

    @cached_property
    def _said(self) -> dict[str, ClusterAnswer]:
        """What was asked for before. A report of one job asks for few of many clusters."""
        return {}

    def said_of(self, worker: str) -> ClusterAnswer:
        """What the MultiKueueCluster of a worker says; of one that has none, that it is missing."""
        if worker not in self._said:
            cluster = self.clusters_by_name.get(worker)
            self._said[worker] = cluster_answer(cluster) if cluster is not None else NO_CLUSTER
        return self._said[worker]

    def names_on(self, worker: str) -> WorkerNames:
        """How a worker calls namespaces and queues."""
        return self.said_of(worker).names

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
    def every_chain(self) -> tuple[Chain, ...]:
        """All Workloads, and what each leads to."""
        return tuple(map(self.chain, self.workloads))

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """Those that MultiKueue looks after, or will once they have quota."""
        return tuple(chain for chain in self.every_chain if chain.is_dispatched)

    @cached_property
    def dispatched(self) -> tuple[Json, ...]:
        """The same Workloads alone."""
        return tuple(chain.workload for chain in self.chains)

    @cached_property
    def jobs_by_worker(self) -> dict[str, list[Json]]:
        """The Workloads that have a worker and have not ended, by its name, whether there is such a worker or not."""
        by_worker: dict[str, list[Json]] = {}
        for workload in self.dispatched:
            worker = workloads.cluster_name(workload)
            if worker is not None and not workloads.is_finished(workload):
                by_worker.setdefault(worker, []).append(workload)
        return by_worker

    def chain(self, workload: Json) -> Chain:
        """What a Workload leads to, looked up once."""
        queue = local_queue_of(workload)
        local = self.local_queues_by_key.get(queue)
        name = workloads.cluster_queue(workload) or leads_to(local or {})
        cluster_queue = self.queues_by_name.get(name)
        entries = [entry for entry in workloads.checks(workload) if entry.get("name") in self.our_checks]
        entry = entries[0] if entries else {}
        on_it = [str(entry["name"]) for entry in entries]
        checks = tuple(dict.fromkeys((*on_it, *self.checks_of_queue(cluster_queue or {}))))
        config = self.configs_by_check.get(checks[0]) if checks else None
        message = str(entry.get("message") or "")
        return Chain(
            workload=workload,
            objects=self,
            queue=queue,
            local_queue=local,
            cluster_queue_name=name,
            cluster_queue=cluster_queue,
            check=next(iter(on_it), None),
            check_state=CheckState(entry.get("state") or CheckState.PENDING),
            check_since=parse_timestamp(entry.get("lastTransitionTime")),
            message=message,
            says=Message.read(message),
            checks=checks,
            config=config,
            workers=clusters(config or {}),
        )

    @cached_property
    def configs_by_check(self) -> dict[str, Json]:
        """The MultiKueueConfigs that our AdmissionChecks refer to, as far as there are such."""
        known = _by_name(self.configs)
        named = {check: config_name(obj) for check, obj in self.our_checks.items()}
        return {check: known[config] for check, config in named.items() if config in known}

    def workers_of(self, check: str) -> list[str]:
        """The names that the MultiKueueConfig of a check lists, known or not."""
        return clusters(self.configs_by_check.get(check, {}))

    def check_of_queue(self, cluster_queue: Json) -> str | None:
        """The first check of ours on a ClusterQueue."""
        return next(self.checks_of_queue(cluster_queue), None)

    def checks_of_queue(self, cluster_queue: Json) -> Iterator[str]:
        """All checks of ours on a ClusterQueue: one of them holds its jobs up as well as the other."""
        return (name for name in check_names(cluster_queue) if name in self.our_checks)


@attrs.frozen(eq=False)
class Chain:
    """A Workload and what it leads to on the manager: its queues, and the checks that they bring."""

    workload: Json
    objects: ManagerObjects = attrs.field(repr=False)
    queue: ObjectKey
    """The LocalQueue that it names."""
    local_queue: Json | None
    cluster_queue_name: str
    """Also of one that may not be read; empty: no LocalQueue tells it."""
    cluster_queue: Json | None
    """The ClusterQueue that gave it quota or, before that, the one behind its LocalQueue."""
    check: str | None
    """The check of ours that it has."""
    check_state: CheckState
    """Its state; Pending without one."""
    check_since: datetime | None
    """Since when it has that."""
    message: str
    """What it says, as it stands there."""
    says: Message
    """The same, taken apart."""
    checks: tuple[str, ...]
    """All checks of ours that it has, or will get from its ClusterQueue."""
    config: Json | None
    """The MultiKueueConfig of the first of these."""
    workers: list[str]
    """The names that it lists, known or not."""

    @cached_property
    def offered_to(self) -> tuple[str, ...]:
        """The workers that are asked: one that is cordoned later stays nominated, and its copy is withdrawn."""
        return tuple(name for name in workloads.nominated(self.workload) if not self.objects.said_of(name).hold)

    @cached_property
    def earlier_runs(self) -> tuple[EarlierRun, ...]:
        """The runs of it that it waits for; empty: none, or that is not known."""
        return earlier_runs_in(self.workload, self.message)

    @property
    def is_dispatched(self) -> bool:
        """Whether MultiKueue looks after it, or may: what its queue says may not be read, or it names none. A copy
        belongs to its original."""
        return bool(self.check or self.may_be_checked or self.leads_nowhere) and not self.is_copy

    @property
    def may_be_checked(self) -> bool:
        """Whether its ClusterQueue has a check of ours, or one that does not exist. Where that may not be read: unless
        Kueue has let it run without any.
        """
        if self.objects.unread & _ON_THE_WAY:
            return not self.is_admitted_unchecked
        known = self.objects.checks_by_name
        return bool(self.checks) or any(name not in known for name in check_names(self.cluster_queue or {}))

    @property
    def is_admitted_unchecked(self) -> bool:
        """Whether Kueue lets its job run here without any check: so its ClusterQueue had none."""
        placed = workloads.cluster_name(self.workload) is not None or workloads.noted_worker(self.workload)
        return workloads.is_admitted(self.workload) and not (workloads.checks(self.workload) or placed)

    @property
    def has_no_queue(self) -> bool:
        """Whether the LocalQueue that it names does not exist, and nothing else gave it quota."""
        known = LOCAL_QUEUE in self.objects.unread or self.local_queue is not None
        return bool(self.queue.name) and not known and not workloads.cluster_queue(self.workload)

    @property
    def queue_meant(self) -> str:
        """Which LocalQueue may be meant by the name of one that does not exist, as `suggestion` says it."""
        here = (key.name for key in self.objects.local_queues_by_key if key.namespace == self.queue.namespace)
        return suggestion(self.queue.name, here)

    @property
    def leads_nowhere(self) -> bool:
        """Whether it has no queue, or one whose ClusterQueue does not exist."""
        read = CLUSTER_QUEUE not in self.objects.unread and self.local_queue is not None
        return self.has_no_queue or (read and self.cluster_queue is None)

    @property
    def is_copy(self) -> bool:
        """Whether it says that it is a copy, and is on a worker, be it the manager itself."""
        is_checked = bool(self.check or self.checks)
        return ORIGIN_LABEL in labels_of(self.workload) and (not is_checked or self.is_own_copy)

    @property
    def is_own_copy(self) -> bool:
        """Whether it says that it is a copy, and is where the manager, as a worker, has those."""
        key, came_from = ObjectKey.of(self.workload), origin_namespace(self.workload)
        if came_from == key.namespace or ORIGIN_LABEL not in labels_of(self.workload):
            return False
        own = filter(self.objects.is_manager, self.objects.clusters_by_name)
        return any(self.objects.names_on(name).namespace(came_from) == key.namespace for name in own)


def _is_ours(check: Json) -> bool:
    spec = check.get("spec") or {}
    names_config = dig(spec, "parameters", "kind") == _CONFIG and not is_placement_check(check)
    return spec.get("controllerName") == CONTROLLER_NAME or names_config


def _by_name(objects: Iterable[Json]) -> dict[str, Json]:
    return {name_of(each): each for each in objects}
