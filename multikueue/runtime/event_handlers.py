"""Which change wakes which reconcile. Handlers run inside the watches: they look things up and enqueue, no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import cluster_name, has_quota, is_evicted, is_finished, owner
from multikueue.core.workload.siblings import affected, may_have_siblings
from multikueue.runtime.controller import Controller
from multikueue.runtime.copy_handlers import STATUS_BATCH, is_of_status_only
from multikueue.runtime.hooks import ManagerHook
from multikueue.runtime.manager_cluster import Changed, ManagerCluster, kubeconfig_path
from multikueue.runtime.worker_pool import WorkerCluster
from multikueue.runtime.workload_memory import WorkloadMemory


@attrs.define(eq=False)
class EventHandlers:
    """Routes changes to the controllers' queues. Built before them, connected to them once they exist."""

    controller_name: str
    memory: WorkloadMemory
    _manager: ManagerCluster | None = attrs.field(default=None, init=False)
    _workloads: Controller[ObjectKey] | None = attrs.field(default=None, init=False)
    _clusters: Controller[ObjectKey] | None = attrs.field(default=None, init=False)
    _checks: Controller[ObjectKey] | None = attrs.field(default=None, init=False)
    _hook: ManagerHook | None = attrs.field(default=None, init=False)
    _quotas: Callable[[], None] = attrs.field(default=lambda: None, init=False)

    def connect(
        self,
        manager: ManagerCluster,
        workloads: Controller[ObjectKey],
        clusters: Controller[ObjectKey],
        checks: Controller[ObjectKey],
        *,
        hook: ManagerHook | None,
        quotas: Callable[[], None] = lambda: None,
    ) -> None:
        """Say where keys go; `quotas` is called when the sums of the workers' quotas may be others."""
        self._quotas = quotas
        self._manager, self._workloads, self._clusters, self._checks, self._hook = (
            manager,
            workloads,
            clusters,
            checks,
            hook,
        )

    @property
    def manager(self) -> ManagerCluster:
        """The manager's caches."""
        assert self._manager is not None, "a change arrived before the sources were connected"
        return self._manager

    @property
    def changed(self) -> Mapping[str, Changed]:
        """Handlers for the manager's caches, by cache."""
        return {
            "workloads": self._workload_changed,
            "jobs": self._job_changed,
            "checks": self._check_changed,
            "configs": self._config_changed,
            "clusters": self._cluster_changed,
            "secrets": self._secret_changed,
        }

    def remote_workload_changed(self, key: ObjectKey, after: float) -> None:
        """Something of this Workload changed on a worker; it may wait for so many seconds."""
        self._touched(key)
        self._enqueue_workloads([key], after)

    def remote_job_changed(self, gvk: GVK, key: ObjectKey, after: float) -> None:
        """A copy changed on a worker of which it cannot be told whose it is: it has the name of the manager's job."""
        for workload in self.manager.owned(gvk, key):
            self.remote_workload_changed(workload, after)

    def _touched(self, key: ObjectKey) -> None:
        if key in self.manager.workloads.informer:
            self.memory.touched(key)

    def remote_cluster_changed(self, remote: WorkerCluster, *, known: bool) -> None:
        """A worker came or went: whatever waits for one, runs there or lies there is looked at again.

        Args:
            remote: the worker.
            known: whether the manager still knows it.
        """
        if self._hook is not None and known:
            self._hook.cluster_connected(remote.name, remote.connection.connected)
        elif self._hook is not None:
            self._hook.cluster_removed(remote.name)
        if self._clusters is not None:
            self._clusters.enqueue(ObjectKey("", remote.name))
        self._quotas()
        self._enqueue_workloads(remote.keys())
        self._enqueue_workloads(self._waiting_for(remote.name))

    def remote_status_changed(self, remote: WorkerCluster) -> None:
        """Only what its MultiKueueCluster says of a worker changed."""
        if self._clusters is not None:
            self._clusters.enqueue(ObjectKey("", remote.name))

    def kubeconfig_changed(self, path: str) -> None:
        """The content of a kubeconfig file changed."""
        for cluster in self.manager.clusters.values():
            if kubeconfig_path(cluster) == path and self._clusters is not None:
                self._clusters.enqueue(ObjectKey.of(cluster))

    def _waiting_for(self, cluster: str) -> Iterator[ObjectKey]:
        for workload in self.manager.workloads.informer.values():
            if has_quota(workload) and not is_finished(workload) and cluster_name(workload) in (None, cluster):
                yield ObjectKey.of(workload)

    def _workload_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        self._touched(key)
        if new is None:
            self.memory.forget(key)
        self._enqueue_workloads([key])
        changed = new or old
        if changed is not None and may_have_siblings(changed) and (owned_by := owner(changed)) is not None:
            siblings = list(self.manager.siblings(key, owned_by))
            self._enqueue_workloads([ObjectKey.of(one) for one in affected(old, new, siblings)])

    def _job_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        job = new or old or {}
        gvk = GVK.of(job["apiVersion"], job["kind"])
        owned = self.manager.workloads_of(key, gvk, job)
        status_only = is_of_status_only(old, new)
        for workload in owned:
            self._touched(workload)
            # The echo of a status we brought home says nothing new. What else it may be is looked at a little later.
            waits = status_only and _runs(self.manager.workloads.get(workload))
            self._enqueue_workloads([workload], STATUS_BATCH if waits else 0.0)

    def _check_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if not any(obj and dig(obj, "spec", "controllerName") == self.controller_name for obj in (old, new)):
            return
        self._quotas()
        if self._checks is not None:
            self._checks.enqueue(key)
        if old is None or new is None or config_name(old) != config_name(new):
            self._enqueue_check(key.name)

    def _config_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        self._quotas()
        if old is not None and new is not None and clusters(old) == clusters(new):
            return
        for check in self.manager.checks_using(key.name):
            if self._checks is not None:
                self._checks.enqueue(ObjectKey("", check))
            self._enqueue_check(check)

    def _cluster_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if self._clusters is not None and _spec_of(old) != _spec_of(new):
            self._clusters.enqueue(key)
        if self._checks is not None and (old is None or new is None or _activity(old) != _activity(new)):
            for config in self.manager.configs_listing(key.name):
                for check in self.manager.checks_using(config):
                    self._checks.enqueue(ObjectKey("", check))

    def _secret_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        del old, new
        for cluster in self.manager.clusters.values():
            if (
                dig(cluster, "spec", "clusterSource", "kubeConfig", "location") == key.name
                and self._clusters is not None
            ):
                self._clusters.enqueue(ObjectKey.of(cluster))

    def _enqueue_check(self, check: str) -> None:
        self._enqueue_workloads(ObjectKey.of(entry) for entry in self.manager.workloads.informer.by("check", check))

    def _enqueue_workloads(self, keys: Iterator[ObjectKey] | list[ObjectKey], after: float = 0.0) -> None:
        if self._workloads is not None:
            for key in keys:
                self._workloads.enqueue(key, after)


def _runs(workload: Json | None) -> bool:
    """Whether a worker has it and it goes on there."""
    if workload is None or is_finished(workload) or is_evicted(workload):
        return False
    return cluster_name(workload) is not None


def _spec_of(cluster: Json | None) -> object:
    if cluster is None:
        return None
    return dig(cluster, "metadata", "deletionTimestamp"), dig(cluster, "metadata", "uid"), dig(cluster, "spec")


def _activity(cluster: Json) -> object:
    active = condition(cluster, "Active") or {}
    return tuple(active.get(field) for field in ("status", "reason", "message"))
