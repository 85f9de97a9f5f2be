"""The manager cluster as the caches show it: the queue, its configuration, and the jobs behind it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from typing import Any

import anyio.abc
import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.config.admission_check import clusters, config_name
from multikueue.core.config.profile_secrets import may_be_for_a_profile
from multikueue.core.inventory.ocm_workers.spoke import OWNER_LABEL
from multikueue.core.machinery.shares import Need, Shares
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, POD, SECRET, WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, identity, is_terminating, labels_of, name_of, resource_version, uid
from multikueue.core.model.second_names import ClusterNames, cluster_names
from multikueue.core.model.shape import workload_flaw
from multikueue.core.model.slimmed import Slimmer, job_slimmer, workload_slimmer
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import Owner, has_members, is_made_for, owner_names
from multikueue.core.model.writers import drop_managed_fields, with_status_controllers_only
from multikueue.errors import NotFound
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.kube.informers.list_pages import InitialList
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.kept_whole import WHOLE, Kept, KeptWhole
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_indexes import (
    INDEXES,
    RUNNING,
    UNPLACED,
    check_names,
    offered_entry,
    owner_entry,
    placed_entry,
)
from multikueue.runtime.target import Target

log = get_logger(__name__)


@attrs.define(eq=False)
class _RequiredKind:
    """Warns once that the manager does not give a kind that every decision needs, and again after it gave it."""

    resource: Resource
    _refused: bool = attrs.field(default=False, init=False)

    def __call__(self, status: InformerStatus) -> None:
        if status.refused and not self._refused:
            may = "may this identity list and watch them?"
            advice = f"is Kueue installed there, with its CRDs, and {may}" if self.resource.gvk.group else may
            log.warning("cannot work without it", resource=str(self.resource), error=status.last_error, advice=advice)
        self._refused = status.refused


@attrs.define(eq=False, repr=False)
class ManagerCluster(Target):
    """The caches of the manager cluster."""

    controller_name: str
    checks: Informer
    configs: Informer
    clusters: Informer
    secrets: Informer

    @classmethod
    def build(
        cls,
        client: ApiClient,
        adapters: AdapterRegistry,
        *,
        before: InitialList,
        controller_name: str,
        namespace: str,
        fraction: Callable[[], float],
        keeps_slim: bool = True,
    ) -> ManagerCluster:
        """Build the caches; `run` fills them.

        Args:
            client: the manager's API server.
            adapters: the job kinds to follow.
            before: the Workloads, if they were read just before.
            controller_name: which AdmissionChecks and jobs are ours.
            namespace: where the kubeconfig Secrets are.
            fraction: the source of jitter.
            keeps_slim: whether large bodies are read again where they are needed: not all of them is kept.
        """
        informer = functools.partial(Informer, client, fraction=fraction)
        kept: Kept | None = Shares(WHOLE) if keeps_slim else None

        def required(resource: Resource, **options: Any) -> Informer:
            return informer(resource, on_status=_RequiredKind(resource), **options)

        workloads = required(
            WORKLOAD,
            initial=before,
            indexes=INDEXES,
            flaw=workload_flaw,
            keeps_unreadable=True,
            slim=_kept(WORKLOAD, workload_slimmer(), kept),
            knows_specs=True,
        )
        return cls(
            client,
            MutationCache(workloads),
            {
                kind.resource.gvk: _jobs(kind, informer, controller_name, _kept(kind.resource, job_slimmer(), kept))
                for kind in adapters.followed
            },
            controller_name,
            required(ADMISSION_CHECK),
            required(MULTIKUEUE_CONFIG),
            required(MULTIKUEUE_CLUSTER),
            required(SECRET, namespace=namespace, transform=_credentials_only),
        )

    def __attrs_post_init__(self) -> None:
        for cache in (self.workloads, *self.jobs.values()):
            if isinstance(kept := cache.informer.slim, KeptWhole):
                cache.informer.subscribe(kept.changed)

    def __repr__(self) -> str:
        unread = f"; not synced: {', '.join(map(str, self.unread))}" if self.unread else ""
        return f"<ManagerCluster {len(self.workloads.informer)} workloads, {len(self.clusters)} workers{unread}>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the caches; ready once all but the job kinds' are complete, see `wait_settled`."""
        async with anyio.create_task_group() as tasks:
            for cache in self.jobs.values():
                tasks.start_soon(cache.informer.run)
            await start_informers(self._required, tasks)
            task_status.started()

    async def wait_settled(self) -> None:
        """Wait until the job kinds' caches are complete, too, or cannot be: a kind may not be installed here."""
        for cache in self.jobs.values():
            await cache.informer.wait_settled()

    async def write_conditions(self, resource: Resource, obj: Json, wanted: list[Json]) -> Json | None:
        """Write the conditions of an object as it was read; return it as it is then, None if it is gone.

        Raises:
            Conflict: it changed since it was read.
        """
        patch = {"metadata": {"resourceVersion": resource_version(obj)}, "status": {"conditions": wanted}}
        try:
            return await self.client.merge_patch(resource, ObjectKey.of(obj), patch, subresource="status")
        except NotFound:
            return None

    @property
    def unread(self) -> list[Resource]:
        """What is needed to decide and has not been complete yet; of job kinds, what has not failed either."""
        jobs = [cache.informer for cache in self.jobs.values() if not cache.informer.status.failures]
        return [informer.resource for informer in (*self._required, *jobs) if not informer.status.synced]

    @property
    def _required(self) -> tuple[Informer, ...]:
        return (self.workloads.informer, self.checks, self.configs, self.clusters, self.secrets)

    def runs_on(self, key: ObjectKey, worker: str) -> bool:
        """Whether a Workload runs on that worker, as it should."""
        informer = self.workloads.informer
        return key in informer.keys_by(RUNNING, worker) and key not in informer.unreadable

    def siblings(self, key: ObjectKey, owned_by: Owner) -> Iterator[Json]:
        """The other Workloads of the same job."""
        for name in self.owned(owned_by.gvk, ObjectKey(key.namespace, owned_by.name)):
            sibling = self.workloads.get(name) if name != key else None
            if sibling is not None:
                yield sibling

    def with_successors(self, key: ObjectKey) -> Iterator[ObjectKey]:
        """A Workload, and if it is a Finished slice, the others of its job: its copies may still run for them."""
        yield key
        workload = self.workloads.get(key)
        facts = WORKLOADS.of(workload) if workload is not None else None
        owned_by = facts.owner if facts is not None and facts.is_finished_slice else None
        for sibling in self.siblings(key, owned_by) if owned_by is not None else ():
            yield ObjectKey.of(sibling)

    def jobs_of(self, key: ObjectKey, workload: Json, owned_by: Owner) -> dict[str, Json]:
        """The jobs behind a Workload, by name: one for most kinds; empty while none can be seen."""
        cache = self.cache_of(owned_by.gvk)
        if cache is None:
            return {}
        if WORKLOADS.of(workload).has_members:
            members = [*cache.of(key), *_claimed(cache, key, workload)]
            return {job["metadata"]["name"]: job for job in members}
        job = cache.get(ObjectKey(key.namespace, owned_by.name))
        return {owned_by.name: job} if job is not None and is_made_for(workload, owned_by, job) else {}

    def is_gone(self, key: ObjectKey) -> bool:
        """Whether there is certainly no Workload of that name."""
        informer = self.workloads.informer
        return informer.status.synced and self.workloads.get(key) is None and key not in informer.unreadable

    def need_of(self, worker: str, key: ObjectKey) -> Need | None:
        """What would be on a worker of a Workload that it has, or that waits for one; None: it does neither."""
        informer, workload = self.workloads.informer, self.workloads.get(key)
        if workload is None or informer.values_of("worker", key).isdisjoint((UNPLACED, placed_entry(worker))):
            return None
        owned_by = WORKLOADS.of(workload).owner
        cache = self.cache_of(owned_by.gvk) if owned_by is not None else None
        jobs = self.jobs_of(key, workload, owned_by) if owned_by is not None else {}
        sizes = [cache.informer.size_of(ObjectKey.of(job)) for job in jobs.values()] if cache is not None else []
        return Need(max(informer.size_of(key), sum(sizes)), max(1, len(jobs)))

    def workloads_of(self, key: ObjectKey, gvk: GVK, job: Json) -> list[ObjectKey]:
        """The Workloads that stand for a job."""
        cache, workloads = self.jobs[gvk], self.owned(gvk, key)
        for entry in cache.entries(job):
            group = ObjectKey.parsed(entry)
            shared = self.workloads.get(group)
            if shared is not None and has_members(shared):
                workloads.append(group)
        if cache.index(job) is None:
            workloads += self._found_by("member", gvk, key)
        return list(dict.fromkeys(workloads))

    def owned(self, gvk: GVK, key: ObjectKey) -> list[ObjectKey]:
        """The Workloads that name the job of this kind and key as the one behind them."""
        return self._found_by("owner", gvk, key)

    def _found_by(self, index: str, gvk: GVK, key: ObjectKey) -> list[ObjectKey]:
        entry, informer = owner_entry(gvk, key), self.workloads.informer
        return sorted(informer.keys_by(index, entry) | informer.unreadable.outlines.keys_by(index, entry))

    def is_ours(self, check: Json | None) -> bool:
        """Whether an AdmissionCheck is for this controller."""
        return bool(dig(check, "spec", "controllerName") == self.controller_name)

    def our_check(self, names: Iterable[str]) -> tuple[str | None, bool]:
        """The first of these AdmissionChecks that is ours, and whether one before it does not exist."""
        unknown = False
        for name in names:
            check = self.checks.get(ObjectKey("", name))
            if self.is_ours(check):
                return name, unknown
            unknown = unknown or check is None
        return None, unknown

    def has_our_check(self, workload: Json) -> bool:
        """Whether a Workload has a check of ours."""
        return self.our_check(check_names(workload))[0] is not None

    def config_of(self, check_name: str | None) -> Json | None:
        """The MultiKueueConfig behind a check."""
        check = self.checks.get(ObjectKey("", check_name or ""))
        return self.configs.get(ObjectKey("", config_name(check))) if check is not None else None

    def checks_using(self, config: str) -> Iterator[str]:
        """The names of our checks that refer to a config."""
        for check in self.checks.values():
            if self.is_ours(check) and config_name(check) == config:
                yield check["metadata"]["name"]

    def configs_listing(self, cluster: str) -> Iterator[str]:
        """The names of the configs that list a cluster."""
        for config in self.configs.values():
            if cluster in (dig(config, "spec", "clusters") or ()):
                yield config["metadata"]["name"]

    def names_of_clusters(self, uids: Mapping[str, str], shown: Collection[frozenset[str]]) -> ClusterNames:
        """Which MultiKueueClusters lead to one cluster; see `cluster_names`."""
        listed = {name for config in self.configs.values() for name in clusters(config)}
        known = (cluster for cluster in self.clusters.values() if not is_terminating(cluster))
        return cluster_names(known, listed, uids, shown)

    def worker_statuses(self) -> Iterator[tuple[str, str, str]]:
        """For each ClusterQueue with Workloads of ours: its name, a worker of its config, and how Active that is."""
        for entry in self.workloads.informer.entries("quota"):
            queue, _, check = entry.rpartition("|")
            if not self.is_ours(self.checks.get(ObjectKey("", check))):
                continue
            for name in clusters(self.config_of(check) or {}):
                worker = self.clusters.get(ObjectKey("", name))
                if worker is not None:
                    yield queue, name, (condition(worker, "Active") or {}).get("status", "Unknown")

    def counts(self) -> Iterator[tuple[str, int, int]]:
        """For each worker that the manager knows: how many Workloads it has, and how many wait that it is offered."""
        for cluster in self.clusters.values():
            name = name_of(cluster)
            yield name, len(self.placed_on(name)), len(self._by_worker(offered_entry(name)))

    def placed_on(self, worker: str) -> Set[ObjectKey]:
        """The Workloads that a worker has and that have not finished. Do not keep the set: it may change."""
        return self._by_worker(placed_entry(worker))

    def _by_worker(self, entry: str) -> Set[ObjectKey]:
        return self.workloads.informer.keys_by("worker", entry)

    def kubeconfig_paths(self) -> Iterator[str]:
        """The kubeconfig files that MultiKueueClusters name."""
        paths = map(kubeconfig_path, self.clusters.values())
        return (path for path in paths if path is not None)


def kubeconfig_path(cluster: Json) -> str | None:
    """The kubeconfig file a MultiKueueCluster names; None if its kubeconfig is elsewhere."""
    reference = dig(cluster, "spec", "clusterSource", "kubeConfig")
    if not reference or reference.get("locationType", "Secret") == "Secret":
        return None
    return reference.get("location") or ""


def _kept(resource: Resource, slimmer: Slimmer, kept: Kept | None) -> KeptWhole | None:
    return KeptWhole(str(resource), slimmer, kept) if kept is not None else None


def _jobs(
    kind: SafeAdapter, informer: functools.partial[Informer], controller_name: str, slim: KeptWhole | None
) -> MutationCache:
    followed = informer(
        kind.resource,
        slim=slim,
        knows_specs=kind.resource != POD,
        label_selector=kind.row.membership.selector,
        flaw=kind.flaw,
        keeps_unreadable=True,
        indexes=kind.job_indexes,
        transform=functools.partial(_slim, kind, controller_name),
    )
    return MutationCache(followed, kind.job_entries)


def _slim(kind: SafeAdapter, controller_name: str, job: Json) -> Json:
    return with_status_controllers_only(kind.slim_job(job, controller_name))


def _credentials_only(secret: Json) -> Json | None:
    """Of the namespace's Secrets only those that may hold a worker's credentials are kept in memory."""
    named = "kubeconfig" in (secret.get("data") or {}) or OWNER_LABEL in labels_of(secret)
    kept = named or may_be_for_a_profile(secret)
    return drop_managed_fields(secret) if kept else identity(secret)


def _claimed(cache: MutationCache, key: ObjectKey, workload: Json) -> Iterator[Json]:
    """The jobs that cannot say which group they belong to, and that the group's Workload names: it must be whole."""
    for name, job_uid in owner_names(workload, cache.informer.resource.gvk).items():
        job = cache.get(ObjectKey(key.namespace, name))
        if job is not None and uid(job) == job_uid and cache.index(job) is None:
            yield job
