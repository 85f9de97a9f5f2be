"""Event handlers: which change enqueues which keys. They are called by informers, so they must not wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

import attrs

from multikueue.adapters import SafeAdapter
from multikueue.core.changes import affected
from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.config.cluster_profiles import profile_reference
from multikueue.core.config.profile_secrets import may_be_for_a_profile
from multikueue.core.machinery.message_rate import Budget
from multikueue.core.machinery.queue import ChargedQueue
from multikueue.core.model.conditions import condition, parse_timestamp
from multikueue.core.model.labels import CORDON_ANNOTATION, PROFILE_ANNOTATION, RETRY_ANNOTATION
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of
from multikueue.core.model.second_names import second_name
from multikueue.core.model.worker_names import WorkerNames
from multikueue.core.model.workload_facts import WORKLOADS, may_have_siblings
from multikueue.kube.informers.informer import Handler, Informer
from multikueue.protocols import ManagerHook
from multikueue.runtime.caches.manager_cluster import ManagerCluster, kubeconfig_path
from multikueue.runtime.caches.workload_indexes import RUNNING, looking
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.job_event_handlers import STATUS_BATCH, handled, is_of_status_only
from multikueue.runtime.workers.executor import WorkerBackoffs
from multikueue.runtime.workers.pool import WorkerCluster, workloads_on

_Keys: TypeAlias = KeyQueue[ObjectKey]


CAUSED: Final = 50_000
"""Workloads that the manager does not have and one worker may have in the queue: as many as it may have copies. The
collection of garbage finds those that are left out."""


LOOKS_AT_ONCE: Final = 60.0
"""Plans of one Workload that may follow each other at once: its life has some 20, a group of many pods has more."""
LOOKS: Final = 2.0
"""And a second in the end. A plan takes several times as long as the event that led to it, and whoever may change a
Workload, its job or a copy decides how often they change."""

MARKS_BATCH: Final = 1.0
"""Seconds for which changes of the labels and annotations of MultiKueueClusters are collected, at least."""
MARKS_RATE: Final = 200.0
"""Workloads that are planned in a second because of such changes, if these do not end."""


def workload_queue(manager: ManagerCluster, memory: WorkloadMemory, concurrency: int) -> _Keys:
    """Namespaces take turns, each with a share of what is reconciled at a time, and so does each worker with the
    Workloads that the manager does not have. In a namespace, those that run where they should and that this process has
    not looked at take turns with all others: after a start these are many, and what is new must not wait for them. One
    that changes all the time is looked at some times a second."""

    def flow(key: ObjectKey) -> tuple[str, bool]:
        return key.namespace, key not in memory and bool(manager.workloads.informer.values_of(RUNNING, key))

    return KeyQueue(ChargedQueue(flow_of=flow, limit=CAUSED, places=concurrency, pace=Budget(LOOKS_AT_ONCE, LOOKS)))


@attrs.frozen
class WorkQueues:
    """One queue of keys per controller."""

    workloads: _Keys
    """See `workload_queue`."""
    clusters: _Keys = attrs.field(factory=KeyQueue)
    checks: _Keys = attrs.field(factory=KeyQueue)
    quotas: _Keys = attrs.field(factory=KeyQueue)
    """ClusterQueues whose quota is the sum of the workers'."""


@attrs.frozen
class Row:
    """Whom a change of what is read of a resource wakes."""

    what: str
    """What that is, for people."""
    read: Callable[[Json | None], object]
    """It, of an object; None: there is none."""
    wakes: tuple[Handler, ...]


def wake(rows: Iterable[Row], key: ObjectKey, old: Json | None, new: Json | None) -> None:
    """An object of these rows changed."""
    for row in rows:
        if row.read(old) != row.read(new):
            for handler in row.wakes:
                handler(key, old, new)


@attrs.define(eq=False)
class ManagerHandlers:
    """The event handlers of the manager cluster."""

    cluster: ManagerCluster
    work: WorkQueues
    memory: WorkloadMemory
    recompute_quotas: Callable[[], None]
    """Called when the sums of the workers' quotas may have changed."""
    ask_again: Callable[[ObjectKey], None]
    """Called for a Workload whose user wants it to be tried again where it was refused."""
    note_names: Callable[[], None]
    """Called when another MultiKueueCluster may come first of those that lead to one cluster."""

    def subscribe(self, kinds: Iterable[SafeAdapter]) -> None:
        """Follow the caches, the jobs of these kinds among them; before they run."""
        cluster = self.cluster
        cluster.workloads.informer.subscribe(self._workload_changed)
        for informer, rows in self.table.items():
            informer.subscribe(partial(wake, rows))
        for kind in kinds:
            cluster.jobs[kind.resource.gvk].informer.subscribe(partial(self._job_changed, kind))

    @property
    def table(self) -> Mapping[Informer, tuple[Row, ...]]:
        """Of each resource but Workloads and jobs: what is read of it, and whom a change of that wakes."""
        cluster = self.cluster
        return {
            cluster.checks: (
                Row("all of one of ours", self._ours, (self._sum_anew, self._reconcile_check)),
                Row("whether it is ours, its config", self._meaning, (self._plan_with_check,)),
            ),
            cluster.configs: (
                Row("all", _all, (self._compare_names, self._sum_anew)),
                Row("its clusters, how one is chosen", _config_meaning, (self._plan_with_config,)),
            ),
            cluster.clusters: (
                Row("how it is reached, whether it goes", _spec_of, (self._reconcile_cluster, self._plan_placed)),
                Row("whether it is a second name", _second_name, (self._sum_anew,)),
                Row("how namespaces and queues are called", _names, (self._sum_anew, self._reconcile_cluster)),
                Row("whether it is active", _activity, (self._reconcile_checks,)),
                Row("its labels and annotations, a cordon", _offered, (self._compare_names, self._plan_looking)),
            ),
            cluster.secrets: (Row("all", _all, (self._reconcile_clusters_of,)),),
        }

    def kubeconfig_changed(self, path: str) -> None:
        """The content of a kubeconfig file changed."""
        for cluster in self.cluster.clusters.values():
            if kubeconfig_path(cluster) == path:
                self.work.clusters.enqueue(ObjectKey.of(cluster))

    def _workload_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is None:
            self.memory.forget(key)
        else:
            self.memory.touched(key, here=True)
        if old is not None and new is not None and asks_again(old, new):
            self.ask_again(key)
        self.work.workloads.enqueue(key)
        changed = new or old
        owned_by = WORKLOADS.of(changed).owner if changed is not None and may_have_siblings(changed) else None
        if owned_by is not None:
            for sibling in affected(old, new, list(self.cluster.siblings(key, owned_by))):
                self.work.workloads.enqueue(ObjectKey.of(sibling))

    def _job_changed(self, kind: SafeAdapter, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        status_only = is_of_status_only(old, new)
        again = old is not None and new is not None and asks_again(old, new)
        concerned = self.cluster.workloads_of(key, kind.resource.gvk, new or old or {})
        stopped = () if concerned or new is None else map(ObjectKey.parsed, kind.stopped_entries(new))
        for workload in (*concerned, *stopped):
            self.memory.touched(workload, here=True)
            if again:
                self.ask_again(workload)
            # Most such changes are the status that we copied from the worker ourselves, so they may wait.
            waits = status_only and _runs(self.cluster.workloads.get(workload))
            self.work.workloads.enqueue(workload, STATUS_BATCH if waits else 0.0)
        handled(kind, old, new)

    def _ours(self, check: Json | None) -> Json | None:
        return check if self.cluster.is_ours(check) else None

    def _meaning(self, check: Json | None) -> object:
        """What a decision reads of an AdmissionCheck: whether it exists, whether it is ours, and its config."""
        return None if check is None else (self.cluster.is_ours(check) and config_name(check))

    def _sum_anew(self, *_: object) -> None:
        self.recompute_quotas()

    def _compare_names(self, *_: object) -> None:
        self.note_names()

    def _reconcile_check(self, key: ObjectKey, *_: object) -> None:
        self.work.checks.enqueue(key)

    def _reconcile_checks(self, key: ObjectKey, *_: object) -> None:
        for check in self._checks_of(key.name):
            self.work.checks.enqueue(ObjectKey("", check))

    def _plan_with_check(self, key: ObjectKey, *_: object) -> None:
        for workload in self.cluster.workloads.informer.by("check", key.name):
            self.work.workloads.enqueue(ObjectKey.of(workload))

    def _plan_with_config(self, key: ObjectKey, *_: object) -> None:
        for check in self.cluster.checks_using(key.name):
            self._reconcile_check(ObjectKey("", check))
            self._plan_with_check(ObjectKey("", check))

    def _reconcile_cluster(self, key: ObjectKey, *_: object) -> None:
        self.work.clusters.enqueue(key)

    def _reconcile_clusters_of(self, key: ObjectKey, *versions: Json | None) -> None:
        """Those whose credentials may be in a Secret."""
        profiles = any(may_be_for_a_profile(secret) for secret in versions if secret is not None)
        for cluster in self.cluster.clusters.values():
            named = dig(cluster, "spec", "clusterSource", "kubeConfig", "location") == key.name
            if named or (profiles and profile_reference(cluster) is not None):
                self.work.clusters.enqueue(ObjectKey.of(cluster))

    def _plan_placed(self, key: ObjectKey, old: Json | None, _new: Json | None) -> None:
        """Those that a worker has may be told that it is gone."""
        for workload in self.cluster.placed_on(key.name) if old is not None else ():
            self.work.workloads.enqueue(workload)

    def _plan_looking(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """Have those planned that may get this worker, in the order of their queue: the first may take all its room. A
        controller may write labels each second: then all wait for so long that a round of them takes a part of the
        loop's time only."""
        if old is None:
            return  # its connection wakes them
        workloads, paced = self.cluster.workloads.informer, _terms(old) == _terms(new)
        named = (workloads.keys_by("check", check) for check in self._checks_of(key.name))
        concerned = looking(workloads) & frozenset[ObjectKey]().union(*named)
        for waiting in sorted(concerned, key=lambda key: _turn(key, workloads.get(key) or {})):
            self.work.workloads.enqueue(waiting, MARKS_BATCH + len(concerned) / MARKS_RATE if paced else 0.0)

    def _checks_of(self, cluster: str) -> Iterator[str]:
        """Our checks that may lead to a worker."""
        for config in self.cluster.configs_listing(cluster):
            yield from self.cluster.checks_using(config)


@attrs.define(eq=False)
class WorkerHandlers:
    """The event handlers of all workers."""

    manager: ManagerCluster
    work: WorkQueues
    memory: WorkloadMemory
    backoffs: WorkerBackoffs
    recompute_quotas: Callable[[], None]
    """Called when the sums of the workers' quotas may have changed."""
    hook: ManagerHook | None
    follows: Callable[[ClusterName, ObjectKey], bool]
    """Whether something may follow for a Workload from a change on a worker. Not now while a finished one is being
    removed there, and not at all once nothing of it is left."""
    _connected: set[ClusterName] = attrs.field(factory=set, init=False)

    def workload_changed(self, cluster: ClusterName, key: ObjectKey, after: float) -> None:
        """Something of this Workload changed on a worker; it may wait for so many seconds."""
        for concerned in self.manager.with_successors(key):
            if self.follows(cluster, concerned):
                self.memory.changed_there(concerned)
                self.enqueue(cluster, concerned, after)
            else:
                self.memory.touched(concerned)

    def pods_left(self, cluster: ClusterName, key: ObjectKey) -> None:
        """A job copy of this Workload is gone there, and pods of it may still end."""
        for concerned in self.manager.with_successors(key):
            self.memory.pods_left(cluster, concerned)

    def job_changed(self, cluster: ClusterName, gvk: GVK, key: ObjectKey, after: float) -> None:
        """A copy changed on a worker whose row does not know its Workloads: it has the name of the manager's job."""
        for workload in self.manager.owned(gvk, key):
            self.workload_changed(cluster, workload, after)

    def enqueue(self, cluster: ClusterName, key: ObjectKey, after: float = 0.0) -> bool:
        """Have a Workload planned because of a worker: at its expense if the manager does not have that Workload.

        Returns:
            Whether it will be; False if too many wait at the worker's expense.
        """
        return self.work.workloads.enqueue(key, after, None if key in self.manager.workloads.informer else cluster)

    def cluster_changed(self, worker: WorkerCluster, known: bool) -> None:
        """A worker came or went: enqueue the Workloads that wait for a worker, run there or have something there.

        Args:
            worker: as it is now.
            known: whether the manager still knows it.
        """
        self._note_connection(worker)
        if self.hook is not None and known:
            self.hook.cluster_connected(worker.name, worker.connection.connected)
        elif self.hook is not None:
            self.hook.cluster_removed(worker.name)
        self.status_changed(worker)
        self.recompute_quotas()
        for key in dict.fromkeys((*workloads_on(worker), *self._waiting_for(worker.name))):
            for concerned in self.manager.with_successors(key):
                self.enqueue(worker.name, concerned)

    def status_changed(self, worker: WorkerCluster) -> None:
        """Only what the MultiKueueCluster's status says of a worker changed."""
        self.work.clusters.enqueue(ObjectKey("", worker.name))

    def _note_connection(self, worker: WorkerCluster) -> None:
        if not worker.connection.connected:
            self._connected.discard(worker.name)
            return
        self.backoffs.connected(worker.name)
        if worker.name not in self._connected:
            self.memory.reconnected(worker.name)
        self._connected.add(worker.name)

    def _waiting_for(self, cluster: str) -> list[ObjectKey]:
        """The Workloads that the worker has, or may get."""
        return sorted(self.manager.placed_on(cluster) | looking(self.manager.workloads.informer))


def asks_again(old: Json, new: Json) -> bool:
    """Whether the user of a job or a Workload has just asked for it to be tried again, with a time that can be read."""
    asked = annotations_of(new).get(RETRY_ANNOTATION)
    return asked != annotations_of(old).get(RETRY_ANNOTATION) and parse_timestamp(asked) is not None


def _runs(workload: Json | None) -> bool:
    """Whether a worker has the Workload, and it is neither finished nor evicted."""
    if workload is None:
        return False
    facts = WORKLOADS.of(workload)
    return facts.cluster_name is not None and not (facts.is_finished or facts.is_evicted)


def _all(obj: Json | None) -> object:
    return obj


def _config_meaning(config: Json | None) -> object:
    """What a decision reads of a MultiKueueConfig: its workers, and how to choose one."""
    return None if config is None else (clusters(config), annotations_of(config).get(PROFILE_ANNOTATION))


def _second_name(cluster: Json | None) -> object:
    return second_name(cluster or {})


def _spec_of(cluster: Json | None) -> object:
    return dig(cluster, "metadata", "deletionTimestamp"), dig(cluster, "metadata", "uid"), dig(cluster, "spec")


def _terms(cluster: Json | None) -> object:
    """What of a MultiKueueCluster opens or closes the worker: it is acted on at once."""
    return cluster is None or is_terminating(cluster), annotations_of(cluster or {}).get(CORDON_ANNOTATION, "")


def _turn(key: ObjectKey, workload: Json) -> tuple[int, str, ObjectKey]:
    """Who is planned before whom."""
    created = str(dig(workload, "metadata", "creationTimestamp") or "")
    return -int(dig(workload, "spec", "priority") or 0), created, key


def _offered(cluster: Json | None) -> object:
    """What of a MultiKueueCluster may change who is offered to it: its terms, and all that dispatchers read."""
    return _terms(cluster), labels_of(cluster or {}), annotations_of(cluster or {})


def _names(cluster: Json | None) -> object:
    """How namespaces and queues are called there."""
    return WorkerNames.of(annotations_of(cluster or {}))


def _activity(cluster: Json | None) -> object:
    active = condition(cluster, "Active") or {} if cluster is not None else None
    return None if active is None else tuple(active.get(field) for field in ("status", "reason", "message"))
