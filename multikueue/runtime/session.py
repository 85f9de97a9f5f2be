"""What one configuration of a worker gives us: a client, and caches of what lies there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.machinery.backoff import CONNECTION_BACKOFF
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import is_elastic
from multikueue.kube.informer import Informer, drop_managed_fields
from multikueue.kube.informer_status import InformerStatus
from multikueue.protocols import ApiClient
from multikueue.runtime.clock import loop_time
from multikueue.runtime.copy_handlers import telling
from multikueue.runtime.crd_checks import CRDCheck, crd_checks
from multikueue.runtime.create_conflicts import CreateConflicts
from multikueue.runtime.mutation_cache import MutationCache
from multikueue.runtime.queue_informers import Queues

_INDEX: Final = "workload"
RENEWAL: Final = 300.0
"""Seconds after which the watch of a worker's Workloads is opened anew. API servers look at a credential only when a
request begins, so this is for how long a worker counts as connected whose token was revoked while nothing is written
there. It costs a request per worker and five minutes."""


@attrs.frozen
class SessionSettings:
    """What all sessions are made with."""

    adapters: AdapterRegistry
    origin: str
    on_workload: Callable[[ObjectKey, float], None]
    """Something of this Workload changed there; it may wait for so many seconds."""
    on_job: Callable[[GVK, ObjectKey, float], None]
    """A job of this kind and name changed there, and its row cannot tell its Workloads; it may wait as above."""
    on_queue: Callable[[], None]
    """A queue or its quota changed there."""
    fraction: Callable[[], float]
    """Where jitter comes from: numbers in [0, 1)."""


@attrs.define(eq=False)
class Session:
    """One configuration's client and caches. Its caches can be read after it has ended: they show what was there."""

    client: ApiClient
    workloads: MutationCache
    jobs: Mapping[GVK, MutationCache]
    queues: Queues
    crd_checks: Mapping[GVK, CRDCheck] = attrs.field(factory=dict)
    """Of declared kinds whose definition there must have certain fields."""
    create_conflicts: CreateConflicts = attrs.field(factory=CreateConflicts)
    _watches: anyio.abc.TaskGroup | None = attrs.field(default=None, init=False)

    @classmethod
    def build(
        cls,
        client: ApiClient,
        settings: SessionSettings,
        on_status: Callable[[], None],
        earlier: Session | None = None,
    ) -> Session:
        """Build the caches; `run` fills them.

        Args:
            client: the worker's API server.
            settings: see `SessionSettings`.
            on_status: called when the state of any cache changes.
            earlier: the session so far with a server of the same address.
        """

        def told(_: InformerStatus) -> None:
            on_status()

        def changed(key: ObjectKey, _old: Json | None, _new: Json | None) -> None:
            settings.on_workload(key, 0.0)

        selector = f"{ORIGIN_LABEL}={settings.origin}"
        cache = functools.partial(Informer, client, label_selector=selector, on_status=told, fraction=settings.fraction)

        def job_cache(kind: SafeAdapter) -> MutationCache:
            before = earlier.cache_of(kind.resource.gvk) if earlier is not None else None
            followed = cache(
                kind.resource,
                indexes={_INDEX: functools.partial(kind.copy_entries, noted=True)},
                transform=lambda copy: drop_managed_fields(kind.slim_copy(copy)),
                on_change=telling(kind, settings.on_workload, settings.on_job),
                predecessor=before.informer if before is not None else None,
            )
            return MutationCache(followed, kind.copy_entries)

        workloads = cache(
            WORKLOAD,
            transform=_without_templates,
            on_change=changed,
            backoff=CONNECTION_BACKOFF,
            lifetime=RENEWAL,
            predecessor=earlier.workloads.informer if earlier is not None else None,
        )
        jobs = {kind.resource.gvk: job_cache(kind) for kind in settings.adapters.followed}
        queues = Queues.build(client, settings.on_queue, on_status=told, fraction=settings.fraction)
        checks = crd_checks(client, (kind.row for kind in settings.adapters), on_status)
        return cls(client, MutationCache(workloads), jobs, queues, checks)

    async def run(self, *, follow_queues: bool) -> None:
        """Keep the caches until cancelled.

        Args:
            follow_queues: whether the queues are wanted from the start; see `follow_queues`.
        """
        async with anyio.create_task_group() as watches:
            self._watches = watches
            watches.start_soon(self.workloads.informer.run)
            for gvk, cache in self.jobs.items():
                watches.start_soon(self._follow_jobs, cache, self.crd_checks.get(gvk))
            if follow_queues:
                self.follow_queues()

    async def _follow_jobs(self, cache: MutationCache, crd_check: CRDCheck | None) -> None:
        """Look at the kind's definition before the kind counts as served, and again while it lacks something."""
        if crd_check is not None:
            await crd_check.look()
        async with anyio.create_task_group() as tasks:
            if crd_check is not None:
                tasks.start_soon(crd_check.run, cache.informer.wait_synced)
            tasks.start_soon(cache.informer.run)

    def follow_queues(self) -> None:
        """Keep the queues, too, from now on."""
        if self._watches is not None and not self.queues.followed:
            self.queues.followed = True
            self._watches.start_soon(self.queues.run)

    def inherit(self, earlier: Session) -> None:
        """Take over what a session with the same server has written and met."""
        self.workloads.inherit(earlier.workloads)
        for gvk, cache in self.jobs.items():
            if gvk in earlier.jobs:
                cache.inherit(earlier.jobs[gvk])
        self.create_conflicts = earlier.create_conflicts

    def cache_of(self, gvk: GVK) -> MutationCache | None:
        """The jobs of one kind; None if the kind is not registered."""
        return self.jobs.get(gvk)

    def synced(self, gvk: GVK) -> bool:
        """Whether the jobs of that kind are known there, as they are now."""
        cache = self.cache_of(gvk)
        return cache is not None and _is_followed(cache.informer)

    def unserved_for(self, gvk: GVK | None) -> timedelta | None:
        """How long following the jobs of that kind has failed; None if it does not."""
        cache = self.cache_of(gvk) if gvk is not None else None
        since = cache.informer.status.failing_since if cache is not None else None
        return timedelta(seconds=loop_time() - since) if since is not None else None

    def is_flawed(self, gvk: GVK | None) -> bool:
        """Whether the kind's definition there lacks what its copies need."""
        crd_check = self.crd_checks.get(gvk) if gvk is not None else None
        return crd_check is not None and bool(crd_check.flaw)

    @property
    def state(self) -> InformerStatus:
        """How the watch goes that decides whether the worker is connected."""
        return self.workloads.informer.status

    @property
    def settled(self) -> bool:
        """Whether the first answer is in for every kind: a list, or that there will be none."""
        return self.answered == {cache.resource for cache in self._caches()}

    @property
    def answered(self) -> frozenset[Resource]:
        """The kinds of which the first answer is in."""
        return frozenset(cache.resource for cache in self._caches() if cache.status.synced or cache.status.failures)

    @property
    def usable(self) -> frozenset[Resource]:
        """The kinds that are followed right now."""
        return frozenset(cache.resource for cache in self._caches() if _is_followed(cache))

    @property
    def unusable(self) -> dict[str, str]:
        """The kinds the worker does not give us, and why. A watch that breaks now and then is nobody's business."""
        refused = (cache for cache in self._caches() if cache.status.refused)
        flaws = {_dotted(gvk): one.flaw for gvk, one in self.crd_checks.items() if one.flaw}
        return {**flaws, **{_dotted(cache.resource.gvk): cache.status.last_error for cache in refused}}

    def keys(self) -> Iterator[ObjectKey]:
        """The Workloads of which something lies there."""
        yield from self.workloads.informer.keys()
        for cache in self.jobs.values():
            for job in cache.informer.values():
                namespace = job["metadata"].get("namespace", "")
                yield from (ObjectKey(namespace, entry.rpartition("/")[2]) for entry in cache.entries(job))

    def _caches(self) -> Iterator[Informer]:
        yield self.workloads.informer
        for cache in self.jobs.values():
            yield cache.informer
        if self.queues.followed:
            yield from self.queues.caches


def _without_templates(copy: Json) -> Json:
    """A Workload copy without its pod templates: they are compared by their digest, which is noted on the copy.

    Those of an elastic job are kept, since they are sent again with its new size.
    """
    for pod_set in () if is_elastic(copy) else dig(copy, "spec", "podSets") or ():
        pod_set.pop("template", None)
    return drop_managed_fields(copy)


def _is_followed(cache: Informer) -> bool:
    return cache.status.synced and cache.status.failures == 0


def _dotted(gvk: GVK) -> str:
    return ".".join(part for part in (gvk.kind, gvk.version, gvk.group) if part)
