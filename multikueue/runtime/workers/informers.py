"""What is read from one worker: its Workloads, jobs, queues and CRDs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.machinery.backoff import CONNECTION_BACKOFF
from multikueue.core.machinery.connection import Health, OpeningWatch, OpenWatch
from multikueue.core.machinery.shares import Need
from multikueue.core.model.copies import forget_replaced
from multikueue.core.model.kinds import POD, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.shape import workload_flaw
from multikueue.core.model.worker_names import origin_key
from multikueue.core.model.worker_states import Kind, Opaque, Served, Syncing, Unserved, Unusable, Unwatched
from multikueue.core.model.writers import drop_managed_fields
from multikueue.core.workload.seen.snapshot import PlanSettings
from multikueue.errors import Cause
from multikueue.kube.http.response_limits import LISTS_UNLIMITED, AnswerLimits
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.reflector import ListerWatcher
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.queue_informers import QueueInformers
from multikueue.runtime.caches.workload_indexes import INDEXES_THERE, QUOTA_INDEXES
from multikueue.runtime.cluster_pool import health_of
from multikueue.runtime.job_event_handlers import copy_handler
from multikueue.runtime.loop import loop_time
from multikueue.runtime.workers.cluster_identity import IdentityCheck, ManagerIdentity
from multikueue.runtime.workers.copies import WorkerCopies, without_templates
from multikueue.runtime.workers.copy_shares import CopyShares
from multikueue.runtime.workers.crd_checks import CRDCheck, crd_checks
from multikueue.runtime.workers.kind_watch import CONTROLLER, UNUSED_AFTER, KindWatch, KindWatches, controller_kinds
from multikueue.runtime.workers.kueue_check import KueueCheck
from multikueue.runtime.workers.moved_away import Suspects
from multikueue.runtime.workers.probe import ProbeRounds, WorkerProbe
from multikueue.runtime.workers.returning import ReturningWorker
from multikueue.runtime.workers.too_full import FullWorker

RENEWAL: Final = 300.0
"""Seconds after which the watch of a worker's Workloads is renewed. API servers check a credential only when a request
begins, so a worker whose token was revoked may count as connected for as long. It costs one request per worker."""


@attrs.frozen
class WorkerSettings:
    """What all workers' informers are made with."""

    adapters: AdapterRegistry
    origin: str
    manager: ManagerIdentity
    """A worker may be the manager itself."""
    on_workload: Callable[[ClusterName, ObjectKey, float], None]
    """Something of this Workload changed on this worker; it may wait for so many seconds."""
    on_job: Callable[[ClusterName, GVK, ObjectKey, float], None]
    """A job of this kind and name changed there, and its row does not know its Workloads; it may wait as above."""
    on_pods_left: Callable[[ClusterName, ObjectKey], None]
    """A job copy of this Workload is gone there, and pods of it may still end."""
    on_queue: Callable[[ObjectKey], None]
    """This ClusterQueue changed there, or one of its LocalQueues."""
    fraction: Callable[[], float]
    """The source of jitter: numbers in [0, 1)."""
    is_used: Callable[[ClusterName, GVK, Iterable[Json]], bool] = lambda _name, _kind, _copies: True
    """Whether jobs of a kind may be on a worker, as the manager and these copies of Workloads there tell; see
    `KindWatch`."""
    unused_after: float = UNUSED_AFTER
    on_figures: Callable[[ClusterName], None] | None = None
    """A queue or a cohort changed there, or its status; None: nobody looks at figures."""
    limits: AnswerLimits = LISTS_UNLIMITED
    """How much of one kind is kept of one worker."""
    need_of: Callable[[ClusterName, ObjectKey], Need | None] = lambda _worker, _key: None
    """How much of a Workload would be on a worker that it may be offered to, or that has it; None: neither."""
    is_gone: Callable[[ObjectKey], bool] = lambda _: False
    """Whether the manager is known to have no Workload of that name."""
    rounds: ProbeRounds = attrs.field(factory=ProbeRounds)
    suspects: Callable[[ClusterName], Suspects | None] = lambda _: None
    """What may be on a lost worker that must not run there; None: nobody looks for it when it returns."""
    lost_after: timedelta = attrs.field(factory=lambda: PlanSettings().worker_lost_timeout)
    """For how long a worker keeps what it has, while it does not answer, or not for a kind."""
    patience: Callable[[ClusterName, float | None], float] = lambda _name, _failing_since: math.inf
    """Seconds until what a worker has, or has of a kind that fails since then on the loop's clock, goes elsewhere;
    infinite: nothing is lost, or no time counts."""


@attrs.define(eq=False, repr=False)
class WorkerInformers(WorkerCopies):
    """The informers of one connection to a worker. Implements `Caches`."""

    name: ClusterName
    """Of the worker."""
    queues: QueueInformers
    watches: KindWatches
    crd_checks: Mapping[GVK, CRDCheck] = attrs.field(factory=dict)
    probe: WorkerProbe = attrs.field(kw_only=True)
    kueue: KueueCheck = attrs.field(kw_only=True)
    full: FullWorker = attrs.field(kw_only=True)
    """What was read by name while more is there than may be listed."""
    identity: IdentityCheck = attrs.field(kw_only=True)
    _queues_wanted: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @classmethod
    def build(
        cls,
        name: ClusterName,
        client: ApiClient,
        settings: WorkerSettings,
        report: Callable[[], None],
        earlier: WorkerInformers | None,
    ) -> WorkerInformers:
        """Build the informers of a worker; `run` fills them.

        Args:
            name: the worker's.
            client: its API server.
            settings: see `WorkerSettings`.
            report: called when the status of any informer changes.
            earlier: those so far, of a server of the same address.
        """
        probe, informer = WorkerProbe(client, settings.rounds), _limited(name, client, settings, report)
        kueue, full = KueueCheck(client, report), _full(name, client, settings)
        workloads = _limited(name, full, settings, report)(
            WORKLOAD,
            sleep=full.sleep,
            flaw=workload_flaw,
            transform=without_templates,
            on_change=partial(_tell_origins, full.tell),
            backoff=CONNECTION_BACKOFF,
            lifetime=RENEWAL,
            heard_at=probe.heard_at,
            indexes=INDEXES_THERE if settings.on_figures is None else {**INDEXES_THERE, **QUOTA_INDEXES},
            predecessor=earlier.workloads.informer if earlier is not None else None,
        )
        is_used = partial(_is_used, settings, name, workloads)
        of_jobs = partial(informer, sleep=partial(_rest, workloads))
        followed = partial(_jobs, of_jobs, is_used, settings, name, earlier)
        jobs = {row.resource.gvk: followed(row) for row in settings.adapters.followed}
        return cls(
            client,
            MutationCache(workloads),
            jobs,
            name,
            _queues(name, client, settings, report),
            KindWatches.build(client, (cache.informer for cache in jobs.values()), is_used, settings.unused_after),
            crd_checks(client, (kind.row for kind in settings.adapters), report),
            probe=probe,
            kueue=kueue,
            full=full,
            identity=IdentityCheck(client, settings.manager, report),
            stored=kueue.stored,
            shares=_shares(name, settings),
        )

    def __attrs_post_init__(self) -> None:
        for cache in (self.workloads, *self.jobs.values()):
            cache.informer.subscribe(partial(self.count, cache))
        self.workloads.informer.subscribe(forget_replaced)  # last: the others compare both versions

    async def run(self) -> None:
        """Keep the caches until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.workloads.informer.run)
            tasks.start_soon(self.probe.run, self.workloads.informer)
            tasks.start_soon(self.kueue.run, self.workloads.informer.wait_synced)
            tasks.start_soon(self._watch_kinds)
            tasks.start_soon(self.identity.run, self.workloads.informer.wait_synced)
            await self._queues_wanted.wait()
            await self.queues.run()

    async def _watch_kinds(self) -> None:
        """Jobs come after the Workloads: which kinds are used is known then, and only one large list is held that is
        not slim yet."""
        await self.workloads.informer.wait_settled()
        await self.watches.run(self._follow_jobs)

    async def _follow_jobs(self, watch: KindWatch) -> None:
        """Read the kind's definition before the kind counts as served, and again while it lacks a field."""
        informer = watch.informer
        gvk = informer.resource.gvk
        async with anyio.create_task_group() as tasks:
            if gvk in self.crd_checks:
                await self.crd_checks[gvk].look()
                tasks.start_soon(self.crd_checks[gvk].run, informer.wait_synced)
            tasks.start_soon(watch.run)

    def want(self, gvk: GVK | None) -> None:
        """See `Target`."""
        self.watches.want(gvk)

    def follow_queues(self) -> None:
        """Keep the queues, too, from now on."""
        self._queues_wanted.set()

    def inherit(self, earlier: WorkerInformers) -> None:
        """Take over the refusals, the writes and what is known of Kueue from informers of the same server."""
        self.workloads.inherit(earlier.workloads)
        for gvk in self.jobs.keys() & earlier.jobs.keys():
            self.jobs[gvk].inherit(earlier.jobs[gvk])
        self.create_conflicts = earlier.create_conflicts
        self.kueue.inherit(earlier.kueue)
        self.identity.inherit(earlier.identity)
        self.shares.inherit(earlier.shares)

    def have_read(self, gvk: GVK | None) -> bool:
        """Whether the Workloads, and the jobs of a kind, have been complete once."""
        cache = self.cache_of(gvk)
        return self.workloads.informer.status.synced and (cache is None or cache.informer.status.synced)

    def kind(self, gvk: GVK | None) -> Kind:
        """How the worker serves a kind."""
        cache = self.cache_of(gvk)
        if cache is None:
            return Unserved(seen=False)
        status = cache.informer.status
        if status.unreadable:
            return Opaque(status.synced)
        if status.failing_since is not None:
            return Unserved(timedelta(seconds=loop_time() - status.failing_since), status.synced)
        if not status.synced:
            return Syncing()
        followed = cache.informer.resource.gvk
        if (checked := self.crd_checks.get(followed)) is not None and checked.flaw:
            return Unusable(checked.flaw)
        return Unwatched() if self.watches.by_kind[followed].is_unwatched else Served()

    @property
    def health(self) -> Health:
        """The watch of the Workloads decides whether the worker is connected, once it is known which cluster it is."""
        health = health_of(self.workloads.informer.status, [informer.status for informer in self._informers])
        if self.identity.asked or not isinstance(health.watch, OpenWatch):
            return health
        return Health(OpeningWatch(), complete=False)

    @property
    def shown(self) -> tuple[object, ...]:
        """Of kinds whether they are answered, watched, unusable; what Kueue there lacks; which cluster it is."""
        kinds = (
            (bool(informer.status.synced or informer.status.failures), _is_followed(informer))
            for informer in self._informers
        )
        return (*kinds, frozenset(self.unusable), self.kueue.known.lacks, self.identity.known)

    @property
    def unusable(self) -> dict[str, tuple[str, str]]:
        """The kinds the worker refuses or has too much of: why, and the `Cause`. Not one whose watch just breaks."""
        statuses = ((informer.resource.gvk.dotted, informer.status) for informer in self._informers)
        flaws = {gvk.dotted: (check.flaw, Cause.FIELD_MISSING) for gvk, check in self.crd_checks.items() if check.flaw}
        refused = {
            kind: (status.last_error, status.cause or "")
            for kind, status in statuses
            if status.refused or status.unreadable
        }
        return {**flaws, **refused}

    @property
    def _informers(self) -> list[Informer]:
        queues = self.queues.both if self._queues_wanted.is_set() else ()
        return [self.workloads.informer, *(cache.informer for cache in self.jobs.values()), *queues]

    def __repr__(self) -> str:
        followed = sum(map(_is_followed, self._informers))
        return f"<WorkerInformers {followed} of {len(self._informers)} kinds followed>"


def _limited(
    name: ClusterName, client: ListerWatcher, settings: WorkerSettings, report: Callable[[], None]
) -> partial[Informer]:
    """What all informers of our copies have in common."""
    return partial(
        Informer,
        client,
        on_status=lambda _: report(),
        fraction=settings.fraction,
        limits=settings.limits,
        label_selector=f"{ORIGIN_LABEL}={settings.origin}",
        belongs=partial(_is_ours, settings.origin),
        keeps_unreadable=True,
        knows_specs=True,
        patience=lambda status: settings.patience(name, status.failing_since),
    )


def _is_used(settings: WorkerSettings, name: ClusterName, workloads: Informer, gvk: GVK) -> bool:
    return settings.is_used(name, gvk, workloads.values())


async def _rest(workloads: Informer, seconds: float) -> None:
    """Wait out a back-off of a kind, at most until its worker is back."""
    with anyio.move_on_after(seconds):
        await workloads.wait_recovered()


def _longest_wait(is_used: Callable[[GVK], bool], gvk: GVK) -> float:
    """Where something of a kind may be there, it is asked for as often as a lost worker."""
    return CONNECTION_BACKOFF.cap if is_used(gvk) else math.inf


def _shares(name: ClusterName, to: WorkerSettings) -> CopyShares:
    return CopyShares(to.limits, partial(to.need_of, name), to.is_gone, partial(to.on_workload, name))


def _full(name: ClusterName, client: ApiClient, settings: WorkerSettings) -> FullWorker:
    """What the Workloads are read through."""
    returning = ReturningWorker(client, partial(settings.suspects, name))
    ours, tell = partial(_is_ours, settings.origin), partial(settings.on_workload, name)
    return FullWorker(returning, settings.adapters, ours, settings.is_gone, tell)


def _jobs(
    informer: partial[Informer],
    is_used: Callable[[GVK], bool],
    to: WorkerSettings,
    name: ClusterName,
    old: WorkerInformers | None,
    kind: SafeAdapter,
) -> MutationCache:
    before = old.cache_of(kind.resource.gvk) if old is not None else None
    followed = informer(
        kind.resource,
        longest_wait=partial(_longest_wait, is_used, kind.resource.gvk),
        flaw=kind.flaw,
        indexes={"workload": partial(kind.copy_entries, noted=True), CONTROLLER: controller_kinds},
        transform=lambda copy: drop_managed_fields(kind.slim_copy(copy)),
        knows_specs=kind.resource != POD,
        on_change=copy_handler(
            kind, partial(to.on_workload, name), partial(to.on_job, name), partial(to.on_pods_left, name)
        ),
        predecessor=before.informer if before is not None else None,
    )
    return MutationCache(followed, kind.copy_entries)


def _queues(name: ClusterName, client: ApiClient, to: WorkerSettings, report: Callable[[], None]) -> QueueInformers:
    return QueueInformers.build(
        client,
        to.on_queue,
        on_status=lambda _: report(),
        fraction=to.fraction,
        on_figures=partial(to.on_figures, name) if to.on_figures is not None else None,
        limits=to.limits,
    )


def _tell_origins(
    on_workload: Callable[[ObjectKey, float], None], _key: ObjectKey, old: Json | None, new: Json | None
) -> None:
    for key in dict.fromkeys(origin_key(copy) for copy in (old, new) if copy is not None):
        on_workload(key, 0.0)


def _is_ours(origin: str, copy: Json) -> bool:
    return bool(dig(copy, "metadata", "labels", ORIGIN_LABEL) == origin)


def _is_followed(informer: Informer) -> bool:
    return informer.status.synced and not informer.status.failures
